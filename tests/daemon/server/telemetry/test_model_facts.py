"""The steps of one sequence that an engine has run between two reports, or since it was loaded."""

from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.messages import Load, StageSpec
from llmd.api.reports import Report
from llmd.server.telemetry.model_facts import ModelFacts, SingleSteps

BARE = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 128)
RAN = structs.replace(BARE, decode_steps=30, single_steps=30, single_s=0.75, decode_kv_bytes=3000)
EARLIER = structs.replace(BARE, decode_steps=10, single_steps=10, single_s=0.25, decode_kv_bytes=1000)


def test_steps_are_those_since_the_earlier_report_or_the_load() -> None:
    assert ModelFacts(name="m", report=RAN).single_steps() == SingleSteps(30, 0.025, 100.0)
    since = ModelFacts(name="m", report=RAN, before=EARLIER).single_steps()
    assert since == SingleSteps(20, 0.025, 100.0)


def test_the_times_of_stages_are_those_since_the_earlier_report_or_the_placement() -> None:
    earlier = structs.replace(EARLIER, timed_steps=10, stages_s=(0.1, 0.1))
    now = structs.replace(RAN, timed_steps=30, stages_s=(0.3, 0.5))
    for before, expected in (
        (None, (0.01, 0.5 / 30)),
        (earlier, (0.01, 0.02)),
        (structs.replace(earlier, stages_s=(0.1,)), (0.01, 0.5 / 30)),  # it was on other devices
        (structs.replace(earlier, timed_steps=90), (0.01, 0.5 / 30)),  # it was placed again
    ):
        steps = ModelFacts(name="m", report=now, before=before).single_steps()
        assert steps is not None
        assert steps.stages_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("report", "before"),
    [(None, None), (BARE, None), (RAN, RAN), (structs.replace(RAN, decode_steps=31), EARLIER)],
)
def test_without_such_steps_or_with_others_there_are_none(
    report: Report | None, before: Report | None
) -> None:
    assert ModelFacts(name="m", report=report, before=before).single_steps() is None


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (None, False),
        (Load(""), False),
        (Load("", device="cpu"), True),
        (Load("", stages=(StageSpec("cpu", "embed", "head"),)), True),
    ],
)
def test_settings_choose_the_devices(asked: Load | None, *, chosen: bool) -> None:
    assert ModelFacts(name="m", asked=asked).chosen_device == chosen
