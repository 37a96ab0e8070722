"""Vectors for several tokens against the reference, and the same bits however a sequence is cut."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import BLOCK_LEN, Compress, KVDtype, KVGroup, Step, TensorRef
from llmd.api.step import Float32
from llmd.builtin.reference.kv import KVPool
from llmd.testing.compressed_cases import compressed_cases
from llmd_backend_cuda.ops.compress import PartsOfGroup, compress_launches, part_groups
from llmd_backend_cuda.parts_memory import PartsMemory
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows
from tests.cuda.simulated import NEEDS_COMPILER, lowered

pytestmark = NEEDS_COMPILER

LENGTH, BLOCKS = 75, 12
BOUND = 1e-12
"""Of the NMSE; sums are float32."""


class Bench:
    """An op of the second of two layers, and two sequences of which each has `LENGTH` tokens."""

    def __init__(self, dim: int, stride: int, *, overlap: bool, kv_dtype: KVDtype) -> None:
        width = dim * (1 + overlap)
        op = Compress("x", "gate", "out", TensorRef("bias", (stride * width,)), 0, 1, dim, stride, overlap)
        self.group = KVGroup(0, op.span, 1, 2 * width, (0, 1), kind="latent")
        bias = random_rows(1, stride * width, 8, 0.5)[0]
        instruction = one_op(op, 2, (0,), kv_layer=1)
        self.one = OneInstruction(instruction, (width, width, dim), (bias,), groups=(self.group,))
        self.values = [random_rows(2 * LENGTH, width, seed, 2.0).reshape(2, LENGTH, -1) for seed in (1, 2)]
        self.kv_dtype = kv_dtype
        order = np.random.default_rng(9).permutation(BLOCKS).astype(np.int32)
        self.table = order[:10].reshape(2, 5)

    def step(self, chunks: Sequence[tuple[int, int]]) -> tuple[Step, dict[int, Float32]]:
        """Return a step with tokens ``first .. end`` of each sequence, and the slots that it reads."""
        step = make_step([end - first for first, end in chunks], tables=(self.table[: len(chunks)],))
        positions = np.concatenate([np.arange(first, end, dtype=np.int32) for first, end in chunks])
        slots = {
            slot: np.concatenate([of[number, first:end] for number, (first, end) in enumerate(chunks)])
            for slot, of in enumerate(self.values)
        }
        return msgspec.structs.replace(step, positions=positions), slots

    def run(self, *steps: Sequence[tuple[int, int]]) -> list[Float32]:
        """Run steps one after the other; return the vectors of each."""
        memory: PartsMemory | None = None
        found = []
        for chunks in steps:
            step, slots = self.step(chunks)
            device = OnDevice(self.one, step, slots)
            before, memory = memory, PartsMemory(device.runtime, self.group, BLOCKS, self.kv_dtype)
            every = np.arange(BLOCKS, dtype=np.int32)
            if before is not None:
                memory.write_blocks(every, before.read_blocks(every))
            table = step.block_tables[0]
            described = device.keep(np.array([4, table.shape[1], -1, -1, *table.reshape(-1)], np.int32))
            parts = PartsOfGroup(memory, described)
            slotted = self.one.instruction.ops[0]
            for launch in compress_launches(device.context, slotted, device.rows, parts):
                device.runtime.launch(launch)
            found.append(device.read(2))
        return found

    def expected(self, chunks: Sequence[tuple[int, int]]) -> Float32:
        return self.one.reference(*self.step(chunks), {0: KVPool(self.group, BLOCKS, self.kv_dtype)})[2]


@pytest.mark.parametrize(
    ("dim", "stride", "series", "kv_dtype"),
    [
        (20, 4, 2, "f32"),
        (13, 16, 1, "f16"),
        (200, 2, 2, "bf16"),
        (7, 32, 2, "f16"),
        (5, 1, 1, "f32"),
    ],
)
def test_vectors_are_those_of_the_reference(dim: int, stride: int, series: int, kv_dtype: KVDtype) -> None:
    bench = Bench(dim, stride, overlap=series > 1, kv_dtype=kv_dtype)
    whole = ((0, LENGTH), (0, 41))
    (found,) = bench.run(whole)
    assert nmse(found, bench.expected(whole)) < BOUND
    completes = (np.arange(LENGTH) + 1) % stride == 0
    np.testing.assert_array_equal(found[:LENGTH].any(axis=1), completes)
    cuts = [((first, end),) for first, end in itertools.pairwise((0, 1, 3, 17, 40, 74, LENGTH))]
    np.testing.assert_array_equal(np.concatenate(bench.run(*cuts)), found[:LENGTH])


def test_gates_of_any_size() -> None:
    bench = Bench(6, 4, overlap=True, kv_dtype="f32")
    bench.values[1] *= 1e4
    (found,) = bench.run(((0, LENGTH), (0, 1)))
    assert nmse(found, bench.expected(((0, LENGTH), (0, 1)))) < BOUND


def test_what_other_sequences_left_in_blocks_does_not_matter() -> None:
    bench = Bench(6, 4, overlap=True, kv_dtype="f16")
    first, second = bench.run(((0, LENGTH), (0, LENGTH)), ((0, BLOCK_LEN),))
    np.testing.assert_array_equal(second, first[:BLOCK_LEN])


def test_groups_of_parts_are_those_that_an_op_keeps() -> None:
    case = next(case for case in compressed_cases() if case.name == "merge_attention/chosen-f16")
    assert part_groups(lowered(case.plan, case.first_part, case.last_part)) == {0}
