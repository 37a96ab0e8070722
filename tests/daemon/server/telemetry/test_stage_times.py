"""Predicted and measured times of stages, as far as they are known."""

from __future__ import annotations

from msgspec import structs

from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction
from llmd.server.telemetry.stage_times import StageTime, stage_times

FIRST, SECOND = (StageReport(name, "layers", 1, 1, 1) for name in "ab")
BARE = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 128)
RAN = structs.replace(BARE, single_steps=4, single_s=2.0)


def test_a_divided_model_has_the_times_of_each_stage() -> None:
    report = structs.replace(RAN, timed_steps=2, stages_s=(0.5, 1.0))
    assert stage_times([FIRST, SECOND], Prediction((0.125, 0.5)), report) == (
        StageTime("a", 125.0, 250.0),
        StageTime("b", 500.0, 500.0),
    )


def test_a_model_on_one_device_has_the_time_of_its_steps() -> None:
    assert stage_times([FIRST], Prediction((0.125,)), RAN) == (StageTime("a", 125.0, 500.0),)


def test_what_is_not_known_is_left_out() -> None:
    unknown = StageTime("a", None, None), StageTime("b", None, None)
    assert stage_times([FIRST, SECOND], None, None) == unknown
    assert stage_times([FIRST, SECOND], None, RAN) == unknown, (
        "the time of the whole step is that of no stage"
    )
    assert stage_times([FIRST], None, BARE) == unknown[:1]
    assert stage_times([FIRST, SECOND], Prediction((0.1,)), None) == unknown, "of an earlier placement"
