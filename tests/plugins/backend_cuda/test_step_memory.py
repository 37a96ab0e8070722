"""What a step leaves in the device's memory, and where."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Program, StageLimits, Step
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.compressed_cases import compressed_cases
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.attention_plan import AttentionShape, plan_attention
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.step_memory import StepMemory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents, lowered, step_of
from tests.plugins.backend_cpu.workbench import select

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=40, max_sequences=3, max_outputs=5)
HYBRID = TinyModel(hybrid=True, context_len=96)
WIDTH = 6
"""Blocks of the context."""


class Bench:
    def __init__(self, program: Program | None = None, *, deferred: bool = False) -> None:
        self.card = SimulatedCard(deferred=deferred)
        self.program = program or lowered(HYBRID.plan())
        self.shapes = attention_shapes(self.program)
        self.memory = StepMemory(self.card, self.program, LIMITS, self.shapes)
        self.staging = self.memory.staging()

    def upload(self, step: Step, bucket: int, outputs: Sequence[int] | None = None) -> None:
        selection = None
        if outputs is not None:
            selection = msgspec.structs.replace(select(len(outputs)), rows=np.array(outputs, np.int32))
        self.memory.upload(self.staging, bucket, step, selection)

    def array(self, bucket: int, name: str, count: int) -> list[int]:
        address: int = getattr(self.memory.args(bucket), name)
        return list(map(int, self.read(address, count)))

    def read(self, address: int, count: int) -> NDArray[np.int32]:
        """Return integers from an address on."""
        arrays = self.memory._arrays
        read: NDArray[np.int32] = contents(
            self.card, arrays, np.int32, (address - arrays.pointer) // 4, count
        )  # type: ignore[assignment]
        return read

    def table(self, group: int, sequences: int) -> list[list[int]]:
        """Return the block table of a group as kernels find it."""
        described = self.memory.table(group)
        distance, width = map(int, self.read(described, 2))
        return self.read(described + 4 * distance, sequences * width).reshape(sequences, width).tolist()


def a_step() -> Step:
    """Two sequences: 3 rows that go on at position 30, and 2 new ones."""
    full, window, slots = [[1, 2, -1], [3, -1, -1]], [[4, 5], [6, -1]], [[0, 1], [-1, 2]]
    return step_of([(30, 3), (0, 2)], full, window, slots, seed=5)


def test_kernels_find_the_arrays_of_a_step_and_zeros_behind_them() -> None:
    bench, step = Bench(), a_step()
    bench.upload(step, 8, [2, 4])
    assert bench.array(8, "counts", 4) == [5, 2, 2, 0]
    assert bench.array(8, "token_ids", 8) == [*step.token_ids.tolist(), 0, 0, 0]
    assert bench.array(8, "positions", 8) == [30, 31, 32, 0, 1, 0, 0, 0]
    assert bench.array(8, "sequences", 8) == [0, 0, 0, 1, 1, 0, 0, 0]
    assert bench.array(8, "token_types", 8) == [0] * 8
    assert bench.array(8, "row_offsets", 3) == [0, 3, 5]
    assert bench.array(8, "output_rows", 5) == [2, 4, 0, 0, 0]


def test_kernels_find_the_rows_that_have_adapters() -> None:
    bench = Bench(lowered(adapted_model()))
    step = step_of([(0, 3), (0, 2)], [[1], [2]], [[1], [2]])
    bench.upload(msgspec.structs.replace(step, adapters=np.array([1, 0], np.int32)), 8)
    address, most = bench.memory.adapters(8)
    assert most == 2
    assert bench.read(address, 16).tolist() == [0, 0, 2, 0, 1, 2, 3, 0, 3, 4, 0, 1, 2, 0, 0, 0]
    bench.upload(step, 8)
    assert not bench.read(address, 8).any(), "the items of the step before it are gone"


def test_kernels_find_the_tokens_that_a_step_is_fed_with() -> None:
    bench = Bench()
    for tokens in (0x7123456789ABCD00, 0):
        bench.memory.upload(bench.staging, 8, a_step(), None, tokens)
        assert np.array(bench.array(8, "fed", 2), np.int32).view(np.uint64).tolist() == [tokens]


def test_nothing_of_a_larger_step_is_left() -> None:
    bench = Bench()
    types = np.ones(8, np.int32)
    large = step_of([(0, 8)], [[1]], [[1]], [[-1, 0]])
    bench.upload(msgspec.structs.replace(large, token_types=types), 8, [1, 2, 3, 4, 7])
    assert bench.array(8, "token_types", 8) == [1] * 8
    bench.upload(step_of([(0, 1)], [[1]], [[1]], [[-1, 0]]), 8, [0])
    for name in ("token_types", "positions", "sequences"):
        assert bench.array(8, name, 8) == [0] * 8
    assert bench.array(8, "output_rows", 5) == [0] * 5
    assert bench.array(8, "counts", 4) == [1, 1, 1, 0]


def test_a_step_without_selection_has_no_output_rows() -> None:
    bench = Bench(lowered(HYBRID.plan(), 0, 3))
    bench.upload(step_of([(0, 2)], [[1]], [[1]], [[-1, 0]]), 2)
    assert bench.array(2, "counts", 4) == [2, 1, 0, 0]


@pytest.mark.parametrize("bucket", [8, 40])
def test_block_tables_have_the_width_of_the_step(bucket: int) -> None:
    bench = Bench()
    bench.upload(a_step(), bucket, [])
    assert bench.table(0, 2) == [[1, 2, -1], [3, -1, -1]]
    assert bench.table(1, 2) == [[4, 5], [6, -1]]
    assert bench.table(2, 2) == [[0, 1], [-1, 2]]


def test_entries_beyond_the_context_are_left_out() -> None:
    bench = Bench()
    wide = [[*range(WIDTH), -1, -1], [*range(WIDTH, 2 * WIDTH), -1, -1]]
    bench.upload(step_of([(0, 1), (0, 1)], wide, wide, [[-1, 0], [-1, 1]]), 2, [])
    for group in (0, 1):
        assert bench.table(group, 2) == np.arange(2 * WIDTH).reshape(2, WIDTH).tolist()


def test_blocks_of_more_tokens_are_fewer() -> None:
    """A block has one vector for 32 tokens, or 4 vectors for 4 tokens each."""
    case = next(case for case in compressed_cases() if case.name == "merge_attention/few-f16")
    program = lowered(case.plan, case.first_part, case.last_part)
    bench = Bench(program)
    blocks = [program.context_len // group.block_tokens for group in program.groups]
    assert [group.stride for group in program.groups] == [1, 32, 1]
    wide = [[[*range(count), -1]] for count in blocks]
    bench.upload(step_of([(0, 1)], *wide), 2)
    for group, count in enumerate(blocks):
        assert bench.table(group, 1) == [[*range(count)]]


def test_the_largest_step_fits() -> None:
    bench = Bench()
    full = [[*range(WIDTH)]] * LIMITS.max_sequences
    chunks = [(WIDTH * 16 - 14, 14), (WIDTH * 16 - 13, 13), (WIDTH * 16 - 13, 13)]
    bench.upload(step_of(chunks, full, full, [[0, 1]] * 3), LIMITS.max_rows, [0, 1, 2, 3, 4])
    assert bench.table(1, 3) == full
    assert bench.table(2, 3) == [[0, 1]] * 3


def test_each_shape_has_its_plan() -> None:
    bench, step = Bench(), a_step()
    assert len(bench.shapes) == 2
    for bucket in (8, 40):
        bench.upload(step, bucket, [])
        limits = msgspec.structs.replace(LIMITS, max_rows=bucket)
        for shape in bench.shapes:
            places = shape.num_places(limits, HYBRID.context_len)
            expected = np.empty(shape.plan_ints(limits, HYBRID.context_len), np.int32)
            length = plan_attention(shape, places, step.row_offsets, step.positions, expected)
            found = bench.read(bench.memory.plan(bucket, shape), length)
            np.testing.assert_array_equal(found, expected[:length])
            assert bench.memory.most_items(bucket, shape) == shape.most_items(limits, HYBRID.context_len)
    with pytest.raises(ValueError, match="not in tuple"):
        bench.memory.plan(8, AttentionShape(9, 9, 9, None))


def test_a_step_without_attention_has_no_plan() -> None:
    bench = Bench(lowered(TinyEncoder().plan()))
    bench.upload(step_of([(0, 40)]), 40)
    assert bench.array(40, "positions", 40) == list(range(40))


def test_counts_and_output_rows_have_one_place_for_all_buckets() -> None:
    """The launches of the head, and what describes block tables, are made for no bucket of rows."""
    memory = Bench().memory
    places = {(args.counts, args.output_rows) for args in map(memory.args, (1, 2, 8, 40))}
    assert len(places) == 1
    tables = [name for name in memory._offsets(1) if name.startswith("table ")]
    assert len(tables) == 3
    assert len({tuple(memory._offsets(bucket)[name] for name in tables) for bucket in (1, 2, 8, 40)}) == 1


def test_a_small_step_is_one_small_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the context is long."""
    bench = Bench(lowered(TinyModel(hybrid=True, context_len=1 << 17).plan()))
    copied: list[int] = []
    monkeypatch.setattr(bench.card, "upload", lambda _memory, _at, array: copied.append(array.nbytes))
    for width in (1, 200):
        table = [[*range(width)]]
        bench.upload(step_of([(16 * width - 1, 1)], table, table, [[0, 0]]), 1, [0])
    assert copied[1] - copied[0] == 4 * 2 * 199
    assert copied[0] < 16 << 10


def test_arrays_are_aligned() -> None:
    args = Bench().memory.args(8)
    assert all(getattr(args, name) % 16 == 0 for name, _ in args._fields_)


def test_the_bytes_of_all_arrays_are_counted() -> None:
    for program in (lowered(HYBRID.plan()), lowered(TinyEncoder().plan()), lowered(HYBRID.plan(), 0, 1)):
        card, shapes = SimulatedCard(), attention_shapes(program)
        memory = StepMemory(card, program, LIMITS, shapes)
        assert card.used_bytes == StepMemory.num_bytes(program, LIMITS, shapes)
        assert memory.staging().nbytes == card.used_bytes


def test_tickets_have_their_own_staging_memory() -> None:
    bench, other = Bench(deferred=True), a_step()
    bench.upload(other, 8, [1])
    staging = bench.memory.staging()
    later = step_of([(5, 1)], [[7]], [[7]], [[3, 3]])
    bench.memory.upload(staging, 1, later, None)
    bench.card.run_pending()
    assert bench.array(1, "positions", 1) == [5]
    assert bench.table(0, 1) == [[7]]
    assert bench.staging[:4].tolist() == [5, 2, 1, 0]
