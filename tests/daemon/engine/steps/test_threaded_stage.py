"""Stages that compute in `submit`, each on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceError, DeviceLostError, HostHidden, LateEdits, Stage, StageLimits
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.steps.batch import select_rows
from llmd.engine.steps.busy_time import busy_seconds
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.threaded_stage import ThreadedStage
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.daemon.engine.steps.test_pipeline import make_step

PLAN = TinyModel(window=None, layers=2).plan()
MASKED = msgspec.structs.replace(select_rows(np.array([2], np.int32)), masked=np.array([True]))
PLAIN = select_rows(np.array([2], np.int32))


@pytest.fixture
def inner() -> list[Stage]:
    return make_stages()


def make_stages(*, spans: bool = False) -> list[Stage]:
    device, stages = ReferenceDevice(), list[Stage]()
    for first, last in ((0, 3), (3, len(PLAN.parts))):
        program = lower(PLAN, first, last, format_of=lambda _kind, _ref: "f32", taps=(3,))
        weights = device.load(program, RandomSource(), lambda _done, _total: None)
        stages.append(weights.stage({0: 4}, StageLimits(8, 2, 2, tickets=2, spans=spans)))
    return stages


@pytest.fixture
def pipeline(inner: list[Stage]) -> Iterator[Pipeline]:
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in inner]
        yield Pipeline(
            [ThreadedStage(one, thread, name) for one, thread, name in zip(inner, threads, "ab", strict=True)]
        )


def best(pipeline: Pipeline) -> list[int]:
    with pipeline.submit(make_step(), PLAIN) as tickets:
        found: list[int] = tickets.wait().ids[0, :5].tolist()
        assert found[0] == int(np.argmax(tickets.raw_rows(np.array([0], np.int32))))
        return found


def test_results_are_those_of_the_stages_themselves(inner: list[Stage], pipeline: Pipeline) -> None:
    expected = best(Pipeline(inner))
    assert [best(pipeline) for _ in range(3)] == [expected] * 3, "tickets are released in time"


def test_a_tap_is_that_of_the_stage_itself(inner: list[Stage]) -> None:
    step, hidden = make_step(), HostHidden(np.ones((3, PLAN.hidden_size), np.float32))
    expected = inner[1].tap(inner[1].submit(step, hidden, PLAIN), 3).host().copy()
    with ThreadPoolExecutor(1) as thread:
        stage = ThreadedStage(inner[1], thread, "b")
        ticket = stage.submit(step, hidden, PLAIN)
        assert np.array_equal(stage.tap(ticket, 3).host(), expected)
        with pytest.raises(ValueError, match="part 2 is no tap"):
            stage.tap(ticket, 2)


def test_two_steps_are_in_flight_while_the_first_is_held_up(
    inner: list[Stage], pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, gate, submit = best(pipeline), threading.Event(), inner[1].submit

    def held_up(*arguments: object) -> object:
        assert gate.wait(20.0)
        return submit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inner[1], "submit", held_up)
    with pipeline.submit(make_step(), PLAIN) as first, pipeline.submit(make_step(), PLAIN) as second:
        gate.set()
        assert [one.wait().ids[0, :5].tolist() for one in (first, second)] == [expected] * 2


def test_masks_may_follow_the_submission(pipeline: Pipeline) -> None:
    masks = np.zeros((1, -(-PLAN.vocab_size // 32)), np.uint32)
    masks[0, 0] = 1 << 7
    with pipeline.submit(make_step(), MASKED) as tickets:
        tickets.apply_masks(masks)
        assert tickets.wait().ids[0, 0] == 7
        assert np.isfinite(tickets.edited_row(0)).sum() == 1


def test_edits_may_follow_the_submission(pipeline: Pipeline) -> None:
    late = msgspec.structs.replace(MASKED, late=np.array([True]))
    masks = np.full((1, -(-PLAN.vocab_size // 32)), 0xFFFFFFFF, np.uint32)
    with pipeline.submit(make_step(), late) as tickets:
        one = np.ones(1, np.float32)
        tickets.apply_edits(LateEdits(np.array([0, 1], np.int32), np.array([9], np.int32), one, 1e4 * one))
        tickets.apply_masks(masks)
        assert tickets.wait().ids[0, 0] == 9


def test_a_step_that_is_released_before_it_has_its_masks_holds_nothing_up(pipeline: Pipeline) -> None:
    expected = best(pipeline)
    for _ in range(3):
        pipeline.submit(make_step(), MASKED).release()
    assert best(pipeline) == expected


@pytest.mark.parametrize("at", [0, 1])
def test_the_error_of_a_stage_is_raised_when_its_result_is_waited_for(
    inner: list[Stage], pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    expected = best(pipeline)
    with monkeypatch.context() as patch:

        def fail(*_arguments: object) -> None:
            raise DeviceError("lost")

        patch.setattr(inner[at], "submit", fail)
        with pipeline.submit(make_step(), PLAIN) as tickets, pytest.raises(DeviceError, match="lost"):
            tickets.wait()
    assert best(pipeline) == expected


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds up the stages that wait for it until the test ends."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.mark.parametrize("at", [0, 1])
def test_a_step_that_does_not_end_in_time_is_an_error_of_the_device_that_hangs(
    inner: list[Stage], pipeline: Pipeline, gate: threading.Event, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    begun, submit = threading.Event(), inner[at].submit

    def hang(*arguments: object) -> object:
        begun.set()
        gate.wait(20.0)
        return submit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inner[at], "submit", hang)
    tickets = pipeline.submit(make_step(), PLAIN)
    assert begun.wait(20.0)
    with pytest.raises(DeviceLostError, match=r"within 0\.01 s") as lost:
        pipeline._stages[-1].wait(tickets.ticket, 0.01)
    assert lost.value.devices == ("ab"[at],)


def test_a_stage_that_hangs_does_not_hold_up_the_closing_of_the_pipeline(
    inner: list[Stage], pipeline: Pipeline, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    ended: list[bool] = []
    monkeypatch.setattr(inner[0], "submit", lambda *_arguments: ended.append(gate.wait(20.0)))
    monkeypatch.setattr(inner[1], "close", lambda: closed.append("b"))
    pipeline.submit(make_step(), PLAIN)
    pipeline._stages[1].close()
    assert (closed, ended) == (["b"], []), "it no longer waits for the rows of the other stage"
    monkeypatch.setattr("llmd.engine.steps.threaded_stage.LEAST_S", 0.01)
    pipeline.close()
    assert not ended


def test_blocks_are_read_and_written_on_the_thread(pipeline: Pipeline) -> None:
    best(pipeline)
    stage, blocks = pipeline._stages[0], np.array([0], np.int32)
    contents = stage.read_blocks(0, blocks)
    assert contents.any()
    stage.write_blocks(0, blocks, np.zeros_like(contents))
    assert not stage.read_blocks(0, blocks).any()


def test_closing_ends_the_steps_in_flight(pipeline: Pipeline) -> None:
    pipeline.submit(make_step(), MASKED)
    pipeline.close()


def test_the_times_of_a_step_are_those_of_its_stages() -> None:
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in "ab"]
        stages = [
            ThreadedStage(one, thread, name, spans=True)
            for one, thread, name in zip(make_stages(spans=True), threads, "ab", strict=True)
        ]
        with Pipeline(stages, spans=[True, True]).submit(make_step(), MASKED) as tickets:
            tickets.apply_masks(np.full((1, -(-PLAN.vocab_size // 32)), 0xFFFFFFFF, np.uint32))
            tickets.wait()
            first, last = tickets.spans()
    assert [span.name for span in first if span.kind == "device"] == ["layers"]
    assert [span.name for span in last if span.kind == "device"] == ["layers", "candidates", "masks"]
    assert first[-1].end_s <= last[-1].start_s


def test_without_times_of_the_device_those_of_its_thread_are_known(inner: list[Stage]) -> None:
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in inner]
        stages = [
            ThreadedStage(one, thread, name) for one, thread, name in zip(inner, threads, "ab", strict=True)
        ]
        with Pipeline(stages, spans=[True, True]).submit(make_step(), MASKED) as tickets:
            masks_at = time.perf_counter()
            tickets.apply_masks(np.full((1, -(-PLAN.vocab_size // 32)), 0xFFFFFFFF, np.uint32))
            tickets.wait()
            first, last = tickets.spans()
            assert tickets.stages_s() == (busy_seconds(first), busy_seconds(last))
    assert [(span.kind, span.name) for span in first] == [("device", "layers")]
    assert [(span.kind, span.name) for span in last] == [("device", "layers"), ("device", "results")]
    assert first[0].end_s <= last[0].start_s < last[0].end_s <= last[1].start_s
    assert last[1].start_s >= masks_at
