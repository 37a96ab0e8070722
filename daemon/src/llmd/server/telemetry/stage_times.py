"""Predicted and measured times of the stages of a model."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction


class StageTime(Struct, frozen=True):
    """What a step of one sequence takes in one stage."""

    device: str
    """The device of the stage."""
    predicted_ms: float | None
    """Milliseconds by the measured rates of the device; None: it was not measured."""
    measured_ms: float | None
    """Mean milliseconds of such steps since the model was placed. None: there was none, or the device does
    not say when it works on a step."""


def stage_times(
    stages: Sequence[StageReport], prediction: Prediction | None, report: Report | None
) -> tuple[StageTime, ...]:
    """Return the times of each stage of a model."""
    nothing = (None,) * len(stages)
    predicted = _in_ms(prediction.stages_s) if prediction else nothing
    measured = _measured_ms(report) if report else nothing
    if len(predicted) != len(stages):
        predicted = nothing  # it is of an earlier placement
    if len(measured) != len(stages):
        measured = nothing  # as far as the report says, there is one stage
    rows = zip(stages, predicted, measured, strict=True)
    return tuple(StageTime(stage.device, *times) for stage, *times in rows)


def _measured_ms(report: Report) -> tuple[float, ...]:
    if report.timed_steps:
        return _in_ms([seconds / report.timed_steps for seconds in report.stages_s])
    return _in_ms([report.single_s / report.single_steps]) if report.single_steps else ()


def _in_ms(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(1e3 * one for one in seconds)
