"""Streamed parts have the same bits as resident ones; copies and kernels wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError, Span
from llmd.api.step import Float32
from llmd.testing.plans import TinyModel
from llmd_backend_cuda import stage as stage_module
from llmd_backend_cuda.runtime import CopyStream, Launch
from llmd_backend_cuda.weight_stream import WeightStream
from tests.cuda.simt.copies import SimtCopies
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, load, lowered
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_cuda.bench import LIMITS, PLAN, Bench, one

pytestmark = NEEDS_COMPILER

ALL = range(len(PLAN.parts))
LAYERS = (1, 2, 3, 4)
STEPS = (one(12), one(3, 12), one(1, 15))
"""Steps of one sequence: many rows, few, and one."""


@pytest.fixture(scope="module")
def expected() -> Sequence[Float32]:
    bench = Bench()
    return [bench.logits(step) for step in STEPS]


def queued(bench: Bench) -> list[Float32]:
    """Run the steps, the last two in flight at once; return the logits of all rows of each."""
    found = [bench.logits(STEPS[0])]
    tickets = [bench.stage.submit(step, None, select(step.num_rows)) for step in STEPS[1:]]
    for ticket, step in zip(tickets, STEPS[1:], strict=True):
        bench.stage.wait(ticket, 60.0)
        found.append(bench.stage.raw_rows(ticket, np.arange(step.num_rows, dtype=np.int32)))
        bench.stage.release(ticket)
    return found


def is_right(bench: Bench, expected: Sequence[Float32]) -> bool:
    return all(np.array_equal(mine, other) for mine, other in zip(queued(bench), expected, strict=True))


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("streamed", [ALL, LAYERS, (1, 3, 4), (2,), (2, 5)])
def test_streamed_parts_give_the_same_bits_as_resident_ones(
    streamed: Iterable[int],
    deferred: bool,  # noqa: FBT001 - cases
    expected: Sequence[Float32],
) -> None:
    assert is_right(Bench(SimulatedCard(deferred=deferred), streamed=streamed), expected)


# Planted mistakes


class Careless(SimulatedCard):
    """A card that waits for no copies."""

    def wait_for(self, event: object) -> None:
        pass


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


@pytest.mark.parametrize("deferred", [False, True])
def test_weights_that_are_read_before_they_are_copied_are_found(
    deferred: bool,  # noqa: FBT001 - cases
    expected: Sequence[Float32],
) -> None:
    assert not is_right(Bench(Careless(deferred=deferred), streamed=LAYERS), expected)


def test_weights_that_are_overwritten_while_they_are_read_are_found(expected: Sequence[Float32]) -> None:
    assert not is_right(Bench(Overwriting(deferred=True), streamed=LAYERS), expected)


# Buffers


@pytest.mark.parametrize(("streamed", "buffers"), [(ALL, 2), ((3,), 1), ((), 0)])
def test_two_parts_at_a_time_are_on_the_card(streamed: Iterable[int], buffers: int) -> None:
    card = SimulatedCard()
    parts = tuple(streamed)
    weights = load(card, lowered(PLAN, streamed=parts))
    resident = card.used_bytes
    without = load(SimulatedCard(), lowered(PLAN)).step_bytes(LIMITS)
    sizes = [sum(one.contents.nbytes for one in part.values()) for part in weights._streamed.values()]
    assert weights.step_bytes(LIMITS) - without == buffers * max(sizes, default=0)
    assert len(sizes) == len(parts)
    if parts == tuple(ALL):
        assert resident == 0
    stage = weights.stage({0: 8, 1: 8}, LIMITS)
    stage.close()
    assert card.used_bytes == resident


def test_weights_that_are_in_their_buffer_are_not_copied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    upload = SimtCopies.upload

    def counting(self: SimtCopies, *arguments: object) -> None:
        copied.append(1)
        upload(self, *arguments)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(SimtCopies, "upload", counting)
    few, many = Bench(streamed=(1, 2)), Bench(streamed=(1, 2, 3))
    few.logits(STEPS[0])
    first = len(copied)
    few.logits(STEPS[1])
    assert len(copied) == first > 0
    copied.clear()
    many.logits(STEPS[0])
    first = len(copied)
    many.logits(STEPS[1])
    assert len(copied) > first > 0


def test_a_part_without_weights_of_its_own_is_not_streamed(expected: Sequence[Float32]) -> None:
    plan = TinyModel(layers=1, tied=True).plan()
    bench = Bench(plan=plan, streamed=(0,))  # the head uses the table, too
    assert bench.weights._streamed == {}
    np.testing.assert_array_equal(bench.logits(STEPS[0]), Bench(plan=plan).logits(STEPS[0]))
    assert WeightStream.num_bytes([]) == 0


# Launches


def test_resident_parts_between_streamed_ones_run_as_graphs() -> None:
    bench = Bench(streamed=(1, 2))
    bench.card.launched.clear()
    bench.logits(STEPS[2])
    assert bench.card.num_graphs == 2
    assert 0 < len(bench.card.launched) < 12, "the launches of one layer"


def test_large_steps_have_no_graphs(monkeypatch: pytest.MonkeyPatch, expected: Sequence[Float32]) -> None:
    monkeypatch.setattr(stage_module, "LARGEST_GRAPH", 0)
    bench = Bench(streamed=(1, 2))
    assert is_right(bench, expected)
    assert bench.card.num_graphs == 0


class Failing(SimulatedCard):
    """A card on which one launch can fail."""

    fails_at = 0

    def launch(self, launch: Launch) -> None:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise DeviceError("the card refused a launch")
        super().launch(launch)


@pytest.mark.parametrize("failing", range(1, 20, 3))
def test_a_step_that_failed_leaves_the_buffers_usable(failing: int, expected: Sequence[Float32]) -> None:
    card = Failing(deferred=True)
    bench = Bench(card, streamed=LAYERS)
    found = [bench.logits(STEPS[0])]
    card.fails_at = failing
    with pytest.raises(DeviceError, match="refused a launch"):
        bench.stage.submit(STEPS[1], None, select(3))
    found += [bench.logits(step) for step in STEPS[1:]]
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


# Traces


def traced(streamed: Iterable[int]) -> list[Span]:
    limits = msgspec.structs.replace(LIMITS, spans=True)
    stage = Bench(SimulatedCard(deferred=True), streamed=streamed, limits=limits).stage
    ticket = stage.submit(one(5), None, select(5))
    stage.wait(ticket, 60.0)
    return list(stage.spans(ticket))


def test_a_part_is_copied_while_the_part_before_it_is_computed() -> None:
    spans = traced(LAYERS)
    copied = [span for span in spans if span.kind == "weights"]
    computed = [span for span in spans if span.kind == "device"]
    assert [span.name for span in copied] == ["part 1", "part 2", "part 3", "part 4"]
    assert [span.name for span in computed] == [
        "layers",
        *(span.name for span in copied),
        "layers, candidates",
    ]
    for before, copy, after in zip(computed[:-2], copied, computed[1:-1], strict=True):
        assert copy.start_s <= before.start_s < before.end_s <= copy.end_s <= after.start_s


def test_without_streamed_parts_there_are_no_copies_of_weights() -> None:
    spans = traced(())
    assert [span.name for span in spans if span.kind == "device"] == ["layers, candidates"]
    assert not [span for span in spans if span.kind == "weights"]
