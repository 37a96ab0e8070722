"""The seconds in which a device worked on a step."""

from __future__ import annotations

import pytest

from llmd.api.spans import Span
from llmd.engine.steps.busy_time import busy_seconds


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0.0),
        ([Span("device", "layers", 1.0, 3.0), Span("copy", "results", 4.0, 4.5)], 2.5),
        ([Span("launch", "submit", 0.0, 9.0), Span("device", "layers", 1.0, 3.0)], 2.0),
        ([Span("device", "layers", 1.0, 3.0), Span("weights", "part 2", 0.0, 2.0)], 3.0),
        ([Span("weights", "part 2", 0.0, 9.0), Span("device", "layers", 1.0, 3.0)], 9.0),
    ],
)
def test_what_is_done_at_the_same_time_counts_once_and_launches_do_not(
    spans: list[Span], seconds: float
) -> None:
    assert busy_seconds(spans) == seconds
