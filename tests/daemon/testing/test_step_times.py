"""Wrong times of steps are found."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api import Span
from llmd.api.features import SPANS
from llmd.builtin.reference.device import ReferenceDevice
from llmd.builtin.reference.stage import ReferenceStage
from llmd.testing.conformance import all_cases, cases_for, check_case
from llmd.testing.step_times import faults_of_step, overlaps, wrong_times

(CASE,) = (case for case in all_cases() if case.times_steps)
GOOD = (
    Span("launch", "submit", 1.0, 1.25),
    Span("device", "layers", 1.25, 2.0),
    Span("copy", "out", 2.0, 2.0),
)


def test_the_reference_keeps_right_times() -> None:
    assert wrong_times(ReferenceDevice(), CASE) == ""
    names = [result.name for result in check_case(ReferenceDevice(), CASE)]
    assert f"{CASE.name} times of steps" in names


def test_a_device_that_keeps_none_is_not_asked() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(
        device.info, features=tuple(name for name in device.info.features if name != SPANS)
    )
    assert all("times" not in result.name for result in check_case(device, CASE))
    assert CASE in cases_for(device.info), "the case itself is for all devices"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "host"}, "'host' is no kind of span; no span is of the kind `device`"),
        ({"kind": "copy"}, "no span is of the kind `device`"),
        ({"end_s": 1.2}, "the device span `layers` ends before it begins"),
        ({"start_s": 0.8}, "the device span `layers` begins before the step was submitted"),
        ({"end_s": 2.2}, "the device span `layers` ends after the step has ended"),
    ],
)
def test_a_wrong_span_is_named(fields: dict[str, object], problem: str) -> None:
    launch, device, copy = GOOD
    spans = (launch, msgspec.structs.replace(device, **fields), copy)
    assert faults_of_step(GOOD, 1.0, 2.0) == []
    assert "; ".join(faults_of_step(spans, 1.0, 2.0)) == problem


def test_spans_of_one_kind_must_not_overlap() -> None:
    following = Span("device", "masks", 1.9, 2.1)
    assert overlaps(GOOD) == []
    assert overlaps([following, *GOOD]) == [
        "the device span `masks` begins before the device span `layers` has ended"
    ]
    assert overlaps([msgspec.structs.replace(following, kind="copy", end_s=1.95), *GOOD]) == []


def test_a_device_whose_clock_is_wrong_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ReferenceStage.spans

    def shifted(stage: ReferenceStage, ticket: object) -> list[Span]:
        spans = right(stage, ticket)  # type: ignore[arg-type]
        return [
            msgspec.structs.replace(span, start_s=span.start_s - 9, end_s=span.end_s - 9) for span in spans
        ]

    monkeypatch.setattr(ReferenceStage, "spans", shifted)
    problems = [result.problem for result in check_case(ReferenceDevice(), CASE) if "times" in result.name]
    assert "begins before the step was submitted" in problems[0]
