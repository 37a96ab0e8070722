"""Marks on the stream become times of the host's clock."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from llmd.api import DeviceLostError
from llmd.api.spans import CLOCK_TOLERANCE_S
from llmd_backend_cuda import step_marks
from llmd_backend_cuda.step_marks import StepMarks, StreamClock
from tests.cuda.simulated import NEEDS_COMPILER, HangingCard, SimulatedCard

pytestmark = NEEDS_COMPILER


@pytest.mark.parametrize("deferred", [False, True])
def test_pieces_follow_each_other_between_the_times_of_the_host(deferred: bool) -> None:  # noqa: FBT001 - cases
    card = SimulatedCard(deferred=deferred)
    memory = card.allocate(64)
    clock, marks = StreamClock(card), StepMarks(card)
    began_s = time.perf_counter()
    marks.start()
    card.fill_zero(memory)
    marks.stop("device", "layers")
    marks.stop("copy", "results")
    marks.start()
    card.fill_zero(memory)
    marks.stop("device", "masks")
    card.synchronize()
    ended_s = time.perf_counter()
    layers, results, masks = marks.spans(clock)
    assert [(one.kind, one.name) for one in (layers, results, masks)] == [
        ("device", "layers"),
        ("copy", "results"),
        ("device", "masks"),
    ]
    assert began_s - CLOCK_TOLERANCE_S <= layers.start_s <= layers.end_s == results.start_s
    assert results.end_s <= masks.start_s <= masks.end_s <= ended_s + CLOCK_TOLERANCE_S


def test_a_piece_may_be_on_a_stream_of_copies() -> None:
    card = SimulatedCard()
    copies, clock, marks = card.copy_stream(), StreamClock(card), StepMarks(card)
    memory, array = card.allocate(64), card.pinned(64)
    began_s = time.perf_counter()
    with marks.around(copies, "weights", "part 1"):
        copies.upload(memory, 0, array)
    assert copies.record().wait(1.0)
    (piece,) = marks.spans(clock)
    assert (piece.kind, piece.name) == ("weights", "part 1")
    early, late = began_s - CLOCK_TOLERANCE_S, time.perf_counter() + CLOCK_TOLERANCE_S
    assert early <= piece.start_s <= piece.end_s <= late
    with StepMarks(None).around(copies, "weights", "part 1"):
        copies.upload(memory, 0, array)


def test_without_a_runtime_nothing_is_marked() -> None:
    marks = StepMarks(None)
    marks.start()
    marks.stop("device", "layers")
    assert marks.spans(StreamClock(SimulatedCard())) == []


def test_a_clock_is_set_again_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SimulatedCard()
    clock = StreamClock(card)
    first = clock._mark
    clock.refresh()
    assert clock._mark is first
    monkeypatch.setattr(step_marks, "_ANCHOR_AGE_S", 0.0)
    clock.refresh()
    assert clock._mark is not first


def test_the_clock_is_that_of_the_mark_that_was_reached_soonest(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock is read before each mark, when the stream reaches it, and after it: the second mark takes 1 s.
    readings = iter(
        [0.0, 1.0, 9.0, *(10.0, 10.25, 11.0), *(20.0, 22.0, 25.0), *(30.0, 33.0, 38.0), *(40.0, 41.0, 47.0)]
    )
    stand_in = SimpleNamespace(perf_counter=lambda: next(readings))
    monkeypatch.setattr("llmd_backend_cuda.step_marks.time", stand_in)
    monkeypatch.setattr("tests.cuda.simt.events.time", stand_in)
    clock = StreamClock(SimulatedCard())
    assert clock.seconds(clock._mark) == 10.5


def test_a_stream_that_hangs_is_lost() -> None:
    card = HangingCard()
    card.hangs = True
    with pytest.raises(DeviceLostError, match="did not become idle"):
        StreamClock(card)
