"""Chosen positions are those of the reference, whatever the scores are and however rows are grouped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, Indexer, KVDtype, KVGroup, StageLimits, Step
from llmd.api.step import Float32
from llmd.builtin.reference.kv import KVPool
from llmd_backend_cuda.kv_memory import INDEX_READ_CODES, KVMemory
from llmd_backend_cuda.ops import indexer as indexer_ops
from llmd_backend_cuda.ops.indexer import (
    IndexerArgs,
    IndexerMemory,
    allocate_scores,
    indexer_launches,
    score_bytes,
)
from llmd_backend_cuda.runtime import KernelSpec, Launch
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, one_op, random_rows, upload
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard

pytestmark = NEEDS_COMPILER

LENGTHS = (75, 41)
GROUP = KVGroup(0, None, 1, 21, (0, 1), kind="latent")


def indexer(heads: int, head_dim: int, top_k: int) -> Indexer:
    return Indexer("q", "k", "weights", "chosen", 0, 1, heads, head_dim, top_k)


class Bench:
    """An indexer of the second of two layers, with the rows of two sequences."""

    def __init__(self, op: Indexer, kv_dtype: KVDtype = "f32", stride: int = 1) -> None:
        group = KVGroup(0, None, 1, op.head_dim, (0, 1), kind="latent", stride=stride)
        widths = (op.heads * op.head_dim, op.head_dim, op.heads, op.top_k)
        self.one = OneInstruction(one_op(op, 3, kv_layer=1), widths, groups=(group,))
        rows = sum(LENGTHS)
        self.values = {slot: random_rows(rows, width, slot + 1) for slot, width in enumerate(widths[:3])}
        places = np.random.default_rng(9).permutation(12).astype(np.int32)
        table = np.full((2, 6), -1, np.int32)
        for sequence, length in enumerate(LENGTHS):
            blocks = -(-length // group.block_tokens)
            table[sequence, :blocks] = places[6 * sequence :][:blocks]
        self.step = make_step(LENGTHS, tables=(table,))
        self.group, self.kv_dtype = group, kv_dtype

    def launches(self, device: OnDevice) -> list[Launch]:
        program = self.one.program
        kv = KVMemory(device.runtime, self.group, 12, self.kv_dtype, is_index=True)
        table = self.step.block_tables[0]
        described = device.keep(np.array([4, table.shape[1], -1, -1, *table.reshape(-1)], np.int32))
        self.scores = allocate_scores(device.runtime, program, device.context.limits)
        self.memory = memory = IndexerMemory(kv, described, self.scores)
        return list(indexer_launches(device.context, program.instructions[0].ops[0], device.rows, memory))

    def run(self) -> Float32:
        device = OnDevice(self.one, self.step, self.values)
        for launch in self.launches(device):
            device.runtime.launch(launch)
        return device.read(3)

    def expected(self) -> Float32:
        pool = KVPool(self.group, 12, self.kv_dtype)
        return self.one.reference(self.step, self.values, {0: pool})[3]


@pytest.mark.parametrize(
    ("op", "kv_dtype"),
    [
        (indexer(5, 21, 3), "f32"),
        (indexer(5, 21, 3), "f16"),
        (indexer(64, 128, 40), "f16"),
        (indexer(64, 128, 40), "f32"),
        (indexer(17, 150, 70), "bf16"),
        (indexer(16, 32, 33), "bf16"),
    ],
)
def test_the_positions_are_those_of_the_reference(op: Indexer, kv_dtype: KVDtype) -> None:
    bench = Bench(op, kv_dtype)
    found = bench.run()
    np.testing.assert_array_equal(found, bench.expected())
    assert (found[op.top_k - 1] == np.arange(op.top_k)).all()
    assert (found[0] == [0, *[-1] * (op.top_k - 1)]).all()


@pytest.mark.parametrize(
    ("op", "stride", "kv_dtype"),
    [
        (indexer(5, 21, 3), 4, "f32"),
        (indexer(64, 128, 6), 4, "f16"),
        (indexer(17, 150, 9), 2, "bf16"),
        (indexer(16, 32, 2), 32, "f32"),
    ],
)
def test_vectors_for_several_tokens_are_chosen_of_those_that_a_row_sees(
    op: Indexer, stride: int, kv_dtype: KVDtype
) -> None:
    bench = Bench(op, kv_dtype, stride)
    found = bench.run()
    np.testing.assert_array_equal(found, bench.expected())
    assert (found[: stride - 1] == -1).all()
    assert (found[stride - 1] == [0, *[-1] * (op.top_k - 1)]).all()
    length = -(-256 // stride // BLOCK_LEN) * BLOCK_LEN
    assert score_bytes(bench.one.program, StageLimits(1000, 2, 1)) == 4 * 1000 * length


@pytest.mark.parametrize("power", [-90, -30, 30, 90])
def test_the_size_of_queries_does_not_matter(power: int) -> None:
    bench = Bench(indexer(5, 21, 3))
    expected = bench.run()
    bench.values[0] *= np.float32(2.0**power)
    np.testing.assert_array_equal(bench.run(), expected)


def test_of_equal_scores_the_later_positions_are_chosen() -> None:
    """Products are 0 or below, and so are weights: some sums are -0."""
    bench = Bench(indexer(5, 21, 4))
    bench.values[0], bench.values[1] = -np.abs(bench.values[0]), np.abs(bench.values[1])
    found = bench.run()
    for row, position in enumerate(bench.step.positions.tolist()):
        expected = [*range(max(0, position - 3), position + 1)]
        assert found[row].tolist() == expected + [-1] * (4 - len(expected))


def test_rows_are_scored_in_groups_that_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(indexer(5, 21, 3))
    expected = bench.run()
    program, stride = bench.one.program, 256
    assert score_bytes(program, StageLimits(1000, 2, 1)) == 4 * 1000 * stride
    monkeypatch.setattr(indexer_ops, "_SCRATCH_BYTES", 4 * stride * 50 + 100)
    assert score_bytes(program, StageLimits(1000, 2, 1)) == 4 * 50 * stride
    device = OnDevice(bench.one, bench.step, bench.values)
    launches = bench.launches(device)
    names = [launch.kernel.spec.name for launch in launches]
    assert names == ["store_kv", *["score_positions", "choose_positions"] * 3]
    assert [launch.grid[1] for launch in launches[1::2]] == [50, 50, 19], "119 rows with padding"
    for launch in launches:
        device.runtime.launch(launch)
    np.testing.assert_array_equal(device.read(3), expected)
    monkeypatch.setattr(indexer_ops, "_SCRATCH_BYTES", 0)
    assert score_bytes(program, StageLimits(1000, 2, 1)) == 4 * stride, "a row must fit"


def test_nothing_is_scored_if_no_context_is_longer_than_what_is_chosen() -> None:
    bench = Bench(indexer(2, 21, 256))
    device = OnDevice(bench.one, bench.step, bench.values)
    names = [launch.kernel.spec.name for launch in bench.launches(device)]
    assert names == ["store_kv", "choose_positions"]
    np.testing.assert_array_equal(bench.run(), bench.expected())


def chosen(scores: Float32, top_k: int) -> NDArray[np.integer]:
    """Return the positions of the highest scores, of equal ones the later, ascending."""
    order = np.lexsort((np.arange(len(scores)), scores))
    return np.sort(order[len(scores) - top_k :])


SCORES: dict[str, Callable[[np.random.Generator, int], NDArray[np.generic]]] = {
    "normal": lambda random, count: random.standard_normal(count),
    "few values": lambda random, count: random.integers(-2, 3, count),
    "zeros of both signs": lambda random, count: np.where(random.random(count) < 0.5, 0.0, -0.0),
    "equal in 11 bits": lambda random, count: 1.0 + random.integers(0, 1 << 21, count) * 2.0**-23,
    "equal in 22 bits": lambda random, count: -1.5 - random.integers(0, 1 << 10, count) * 2.0**-23,
    "all sizes": lambda random, count: (
        random.choice([-1, 1], count) * 2.0 ** random.integers(-149, 127, count)
    ),
}


@pytest.mark.parametrize("kind", SCORES)
def test_the_choice_is_exact_for_all_kinds_of_scores(kind: str) -> None:
    random, rows = np.random.default_rng(2), (3000, 2048, 1025, 64)
    top_k, stride = 60, 3008
    scores = np.full((len(rows), stride), np.nan, np.float32)
    for row, count in enumerate(rows):
        scores[row, :count] = SCORES[kind](random, count)
    card = SimulatedCard()
    kv = KVMemory(card, GROUP, 1, "f16", is_index=True)
    spec = KernelSpec.of("indexer", "choose_positions", kv.defines(INDEX_READ_CODES) | {"HEADS": 1})
    step = Step(
        np.zeros(5, np.int32),
        np.array([7, *(count - 1 for count in rows)], np.int32),
        np.array([0, 5], np.int32),
        (),
        np.empty((0, 3), np.int32),
    )
    one = OneInstruction(one_op(indexer(1, 21, top_k), 3), (21, 21, 1, top_k))
    device = OnDevice(one, step, {})
    memory = upload(device.runtime, scores)
    args = IndexerArgs(
        step=device.context.step,
        scores=memory.pointer,
        out=device.slots[3].pointer,
        first_row=1,
        top_k=top_k,
        score_stride=stride,
    )
    device.runtime.launch(Launch(device.runtime.kernel(spec), (6, 1, 1), 1024, args, overlaps=True))
    found = device.read(3)
    for row, count in enumerate(rows):
        wanted = np.where(scores[row, :count] == 0, np.float32(0), scores[row, :count])
        np.testing.assert_array_equal(found[row + 1], chosen(wanted, top_k))
