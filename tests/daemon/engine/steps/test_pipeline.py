from __future__ import annotations

import numpy as np
import pytest

from llmd.api import DeviceLostError, Span, StageLimits, Step
from llmd.engine.steps.batch import select_rows
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step_limit import FACTOR, MOST_S, StepTimes
from llmd.models.lowering import lower
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource


def make_stages(device: NullDevice | None = None) -> list[NullStage]:
    plan, device = TinyModel(window=None).plan(), device or NullDevice(lambda: 0.0)
    stages = []
    for first, last in ((0, 3), (3, 7), (7, 10)):
        program = lower(plan, first, last, format_of=lambda _kind, _ref: "f32")
        parts = device.load(program, RandomSource(), lambda _done, _total: None)
        stages.append(parts.stage({0: 4}, StageLimits(8, 2, 2, tickets=1)))
    return stages


def make_step() -> Step:
    three = np.arange(3, dtype=np.int32)
    return Step(
        three, three, np.array([0, 3], np.int32), (np.zeros((1, 1), np.int32),), np.zeros((0, 3), np.int32)
    )


SELECTION = select_rows(np.array([2], np.int32))


def test_a_step_passes_every_stage_and_its_tickets_are_released() -> None:
    stages = make_stages()
    pipeline = Pipeline(stages)
    for _ in range(3):  # one ticket each: a second step needs the first to be released
        with pipeline.submit(make_step(), SELECTION) as tickets:
            assert tickets.wait().ids.shape == (1, 64)
            assert tickets.edited_row(0).shape == (131,)
    assert [len(stage.submitted) for stage in stages] == [3, 3, 3]


def test_how_long_steps_take_is_news_only_when_it_changes() -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    last_s = 0.0
    device = NullDevice(
        lambda: now, step_s=lambda program, _step: last_s if program.has_head else 2.0, pause=pause
    )
    pipeline = Pipeline(make_stages(device), times=StepTimes(lambda: now, lambda: now))
    news = []
    for seconds in (2.0, 1.0, 1.0, 3.0):  # the first counts until another has ended
        last_s = seconds
        with pipeline.submit(make_step(), SELECTION) as tickets:
            tickets.wait()
        news.append(pipeline.new_computing_s(3))
    first, second, third, fourth = news
    assert third is None
    assert first is not None
    assert second is not None
    assert second < first
    assert fourth == pipeline.computing_s(3)
    assert fourth is not None
    assert fourth > second


def test_tickets_are_released_when_a_later_stage_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = make_stages()
    pipeline = Pipeline(stages)
    with monkeypatch.context() as patch:

        def fail(*_arguments: object) -> None:
            raise ValueError("broken")

        patch.setattr(stages[2], "submit", fail)
        with pytest.raises(ValueError, match="broken"):
            pipeline.submit(make_step(), SELECTION)
    with pipeline.submit(make_step(), SELECTION) as tickets:
        tickets.wait()


def test_a_step_that_does_not_end_in_time_is_the_error_of_its_device() -> None:
    pipeline = Pipeline(make_stages(NullDevice(lambda: 0.0, step_s=2 * MOST_S, name="slow")))
    for _ in range(2):  # one ticket each: the second step needs all tickets of the first
        with (
            pytest.raises(
                DeviceLostError, match=f"slow: the step did not finish within {MOST_S:g} s"
            ) as lost,
            pipeline.submit(make_step(), SELECTION) as tickets,
        ):
            tickets.wait()
        assert lost.value.devices == ("slow",)


def test_the_limit_of_a_step_follows_the_earlier_steps() -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    last_s = 2.0
    device = NullDevice(
        lambda: now, step_s=lambda program, _step: last_s if program.has_head else 2.0, pause=pause
    )
    pipeline = Pipeline(make_stages(device), times=StepTimes(lambda: now, lambda: now / 2))
    for _ in range(2):
        began = now
        with pipeline.submit(make_step(), SELECTION) as tickets:
            tickets.wait()
    step_s = now - began
    assert 2.0 <= step_s < MOST_S / FACTOR
    assert pipeline.computing_s(3) == step_s / 2
    last_s = FACTOR * step_s + 1.0
    with (
        pytest.raises(DeviceLostError, match=f"within {FACTOR * step_s:g} s"),
        pipeline.submit(make_step(), SELECTION) as tickets,
    ):
        tickets.wait()


def test_tickets_are_released_when_the_reader_fails() -> None:
    pipeline = Pipeline(make_stages())
    with pytest.raises(KeyError), pipeline.submit(make_step(), SELECTION):
        raise KeyError
    with pipeline.submit(make_step(), SELECTION) as tickets:
        tickets.wait()


def test_times_are_asked_of_the_stages_that_keep_them() -> None:
    device = NullDevice(lambda: 1.0, step_s=2.0)
    first, second, third = make_stages(device)
    with Pipeline([first, second, third], spans=[False, True, False]).submit(
        make_step(), SELECTION
    ) as tickets:
        tickets.wait()
        assert tickets.spans() == ((), (Span("device", "layers", 3.0, 5.0),), ())
        assert tickets.stages_s() == ()


def test_the_seconds_of_each_stage_are_known_if_all_keep_times() -> None:
    stages = make_stages(NullDevice(lambda: 1.0, step_s=2.0))
    with Pipeline(stages, spans=[True] * 3).submit(make_step(), SELECTION) as tickets:
        tickets.wait()
        assert tickets.stages_s() == (2.0, 2.0, 2.0)


def test_times_of_a_device_that_was_lost_meanwhile_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = make_stages()

    def lost(*_arguments: object) -> None:
        raise DeviceLostError("gone", devices=("null",))

    monkeypatch.setattr(stages[1], "spans", lost)
    with Pipeline(stages, spans=[True] * 3).submit(make_step(), SELECTION) as tickets:
        assert len(tickets.wait().ids) == 1
        assert tickets.stages_s() == ()
