"""Experts that are not on the card: the same bits, whatever is in its memory, and what is counted."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import Format, MemoryBudgetError, ModelPlan, Program, StageLimits, TensorRef, Ticket
from llmd.api.expert_cache import CachesExperts, ExpertCacheUse
from llmd.api.step import Float32
from llmd.models.lowering import lower
from llmd.models.program_bytes import expert_bytes
from llmd.testing.plans import TinyModel
from llmd_backend_cuda import stage as stage_module
from llmd_backend_cuda.expert_cache import ExpertCache
from llmd_backend_cuda.expert_slots import COPIED_PART
from llmd_backend_cuda.programs import PATTERNS
from llmd_backend_cuda.runtime import CopyStream
from llmd_backend_cuda.weights import CudaWeights
from tests.cuda.simt.copies import SimtCopies
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, load, step_of
from tests.plugins.backend_cpu.workbench import select

pytestmark = NEEDS_COMPILER

EXPERTS = 9
PLAN = TinyModel(layers=2, experts=EXPERTS).plan()
WIDE = TinyModel(layers=1, experts=4, hidden=256, ffn=256).plan()
"""Its rows have groups of every format."""
LIMITS = StageLimits(max_rows=20, max_sequences=3, max_outputs=20, tickets=2)
CHUNKS = ((0, 12), (12, 3), *((15 + number, 1) for number in range(8)))
"""A prompt, a few rows, and single ones."""
PAIRS = tuple((first, 2) for first in range(24))
"""Steps enough for several evictions."""


def whole_program(plan: ModelPlan, fmt: Format = "f16") -> Program:
    """Return a program with experts in a format."""

    def format_of(_kind: str, ref: TensorRef) -> Format:
        return fmt if ref.is_stack and ref.is_matrix else "f16" if ref.is_matrix else "f32"

    end = len(plan.parts)
    return lower(plan, 0, end, format_of=format_of, patterns=PATTERNS, activations="f16", precision="f16")


def program_of(plan: ModelPlan, share: float | None, fmt: Format = "f16") -> Program:
    """Return a program of whose experts a share is on the card; None: all."""
    program = whole_program(plan, fmt)
    if share is None:
        return program
    return msgspec.structs.replace(program, expert_bytes=int(share * card_bytes(plan, fmt)))


@functools.cache
def card_bytes(plan: ModelPlan, fmt: Format) -> int:
    """Return the bytes of the experts, as the card has them, and of their table."""
    program = msgspec.structs.replace(whole_program(plan, fmt), expert_bytes=1 << 30)
    cache = load(SimulatedCard(), program)._experts
    assert cache is not None
    return cache.slots.num_bytes + cache.table_memory.num_bytes + cache.used_memory.num_bytes


class Bench:
    """A stage whose steps have the experts of a share on the card."""

    def __init__(
        self,
        share: float | None,
        card: SimulatedCard | None = None,
        plan: ModelPlan = PLAN,
        fmt: Format = "f16",
    ) -> None:
        self.card = card or SimulatedCard()
        self.program = program_of(plan, share, fmt)
        self.weights: CudaWeights = load(self.card, self.program)
        self.stage = self.weights.stage({0: 8, 1: 8}, LIMITS)

    @property
    def use(self) -> ExpertCacheUse:
        assert isinstance(self.weights, CachesExperts)
        use = self.weights.expert_cache()
        assert use is not None
        return use

    def answers(self, chunks: Sequence[tuple[int, int]] = CHUNKS, in_flight: int = 1) -> list[Float32]:
        """Run steps of one sequence, some in flight at once; return what each says of all rows."""
        found: list[Float32] = []
        flights: deque[Ticket] = deque()
        for chunk in chunks:
            if len(flights) == in_flight:
                found.append(self._end(flights.popleft()))
            step = step_of([chunk], [[2, 3]], [[2, 3]], seed=chunk[0])
            flights.append(self.stage.submit(step, None, select(step.num_rows)))
        return [*found, *map(self._end, flights)]

    def _end(self, ticket: Ticket) -> Float32:
        """Wait for a step, and for nothing that follows."""
        result = self.stage.wait(ticket, 60.0)
        found = np.column_stack([result.ids, result.raw, result.raw_logsumexp])
        self.stage.release(ticket)
        return found


def are_equal(found: Sequence[Float32], expected: Sequence[Float32]) -> bool:
    return all(np.array_equal(mine, other) for mine, other in zip(found, expected, strict=True))


@pytest.fixture(scope="module")
def expected() -> Sequence[Float32]:
    return Bench(None).answers()


# Bits


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 1.0])
def test_the_bits_do_not_depend_on_what_is_on_the_card(
    share: float,
    deferred: bool,  # noqa: FBT001 - cases
    expected: Sequence[Float32],
) -> None:
    assert are_equal(Bench(share, SimulatedCard(deferred=deferred)).answers(), expected)


@pytest.mark.parametrize("deferred", [False, True])
def test_steps_in_flight_have_the_same_bits(
    deferred: bool,  # noqa: FBT001 - cases
    expected: Sequence[Float32],
) -> None:
    bench = Bench(0.3, SimulatedCard(deferred=deferred))
    assert are_equal(bench.answers(in_flight=2), expected)
    assert copied_bytes(bench) > 0


@pytest.mark.parametrize("largest_graph", [0, 64])
def test_graphs_have_the_same_bits_as_launches(
    largest_graph: int, expected: Sequence[Float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_module, "LARGEST_GRAPH", largest_graph)
    bench = Bench(0.3, SimulatedCard(deferred=True))
    assert are_equal(bench.answers(), expected)
    assert bool(bench.card.num_graphs) == bool(largest_graph)
    assert copied_bytes(bench) > 0


@pytest.mark.parametrize("fmt", ["q4_g32", "q4_k", "mxfp4", "nvfp4"])
def test_experts_in_every_format_have_the_same_bits(fmt: Format) -> None:
    whole, some = (Bench(share, plan=WIDE, fmt=fmt) for share in (None, 0.5))
    assert are_equal(some.answers(), whole.answers())
    assert some.use.hits
    assert some.use.misses


def test_a_second_stage_goes_on_with_what_the_first_one_left(expected: Sequence[Float32]) -> None:
    bench = Bench(0.3, SimulatedCard(deferred=True))
    bench.answers()
    bench.stage.close()
    bench.stage = bench.weights.stage({0: 8, 1: 8}, LIMITS)
    assert are_equal(bench.answers(), expected)


# Counts


def copied_bytes(bench: Bench) -> int:
    """Return the bytes that were copied to slots: those that were read beyond the misses."""
    return bench.use.read_bytes - bench.use.misses * block_bytes(bench)


def block_bytes(bench: Bench) -> int:
    cache = bench.weights._experts
    assert cache is not None
    (size,) = {int(layer.contents.shape[1]) for layer in cache.layers}
    return size


def test_hits_and_misses_are_the_experts_that_steps_use() -> None:
    """The last step is not counted yet."""
    shares = [Bench(share) for share in (0.05, 0.5, 1.0)]
    for bench in shares:
        bench.answers()
    used = [bench.use.hits + bench.use.misses for bench in shares]
    assert len(set(used)) == 1
    steps, layers = len(CHUNKS) - 1, 2
    assert used[0] >= 2 * steps * layers
    assert shares[0].use.hits <= shares[1].use.hits <= shares[2].use.hits
    assert shares[2].use.misses == 0


def test_the_slots_take_what_the_program_allows() -> None:
    for share in (0.3, 0.5, 1.0):
        bench = Bench(share)
        assert bench.program.expert_bytes is not None
        assert 0 <= bench.program.expert_bytes - bench.use.held_bytes < 2 * block_bytes(bench)


def test_less_is_on_the_card_than_without_a_limit() -> None:
    some, whole = SimulatedCard(), SimulatedCard()
    load(some, program_of(PLAN, 0.3))
    kept = load(some, program_of(PLAN, 0.3))
    all_kept = load(whole, program_of(PLAN, None))
    saved = whole.used_bytes - some.used_bytes
    assert 0.6 * expert_bytes(all_kept._program) < saved
    kept.close()
    assert some.used_bytes < whole.used_bytes


def test_experts_that_are_used_again_are_copied_and_found() -> None:
    bench = Bench(0.5)
    row = [(0, 1)] * 30
    bench.answers(row)
    before = bench.use
    bench.answers(row)
    assert bench.use.hits - before.hits == 30 * 2 * 2
    assert bench.use.misses == before.misses
    assert copied_bytes(bench) <= bench.use.misses * block_bytes(bench) // COPIED_PART


def test_without_a_limit_nothing_is_counted() -> None:
    assert Bench(None).weights.expert_cache() is None


def test_a_budget_without_room_for_the_table_is_refused() -> None:
    program = msgspec.structs.replace(program_of(PLAN, None), expert_bytes=10)
    with pytest.raises(MemoryBudgetError, match="table of experts"):
        load(SimulatedCard(), program)


def test_experts_in_main_memory_are_used_by_the_next_program() -> None:
    card = SimulatedCard()
    first = load(card, program_of(PLAN, 0.3))
    second = load(card, program_of(PLAN, 0.6), have=[first])
    mine, others = second.expert_blocks, first.expert_blocks
    assert all(one is other for one, other in zip(mine, others, strict=True))
    assert len(mine) == 2


# Planted mistakes


class CarelessCopies(SimtCopies):
    """Copies that wait for no kernels."""

    def wait_for(self, event: object) -> None:
        pass


class Overwriting(SimulatedCard):
    """A card whose copies wait for no kernels."""

    def copy_stream(self) -> CopyStream:
        copies = CarelessCopies(self)
        self._copies.add(copies)
        return copies


def test_slots_that_are_overwritten_while_they_are_read_are_found() -> None:
    """Some step uses an expert that is evicted while it is in flight."""
    right, wrong = SimulatedCard(deferred=True), Overwriting(deferred=True)
    expected, found = (Bench(0.5, card).answers(PAIRS, in_flight=2) for card in (right, wrong))
    assert are_equal(expected, Bench(None).answers(PAIRS))
    assert not are_equal(found, expected)


def test_experts_that_are_read_before_they_are_copied_are_found(
    expected: Sequence[Float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ExpertCache.begin_copies

    def careless(self: ExpertCache, moves: Sequence[object]) -> None:
        begin(self, moves)  # type: ignore[arg-type]
        self._copied = self.runtime.record()

    monkeypatch.setattr(ExpertCache, "begin_copies", careless)
    assert not are_equal(Bench(0.5).answers(), expected)


def test_evicted_experts_that_stay_in_the_table_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evict = ExpertCache.evict

    def forgetful(self: ExpertCache) -> Sequence[object]:
        before = self.table.copy()
        moves = evict(self)
        self.table[:] = before
        return moves

    expected = Bench(None).answers(PAIRS)
    monkeypatch.setattr(ExpertCache, "evict", forgetful)
    assert not are_equal(Bench(0.5).answers(PAIRS), expected)
