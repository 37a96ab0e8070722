from __future__ import annotations

import pytest

from llmd.engine.steps.step_limit import LEAST_S, MOST_S, StepLimit


def test_the_first_step_may_take_long() -> None:
    assert StepLimit().seconds(1) == MOST_S


@pytest.mark.parametrize(
    ("longest_s", "rows", "of_rows", "limit_s"),
    [
        (0.1, 4, 4, LEAST_S),
        (4.0, 4, 4, 80.0),
        (4.0, 4, 1, 80.0),
        (4.0, 4, 8, 160.0),
        (4.0, 4, 400, MOST_S),
        (MOST_S, 4, 4, MOST_S),
    ],
    ids=["fast", "slow", "fewer rows", "more rows", "many rows", "very slow"],
)
def test_the_limit_follows_the_longest_wait(
    longest_s: float, rows: int, of_rows: int, limit_s: float
) -> None:
    limit = StepLimit()
    for seconds in (longest_s / 2, longest_s, longest_s / 3):
        limit.waited(rows, seconds)
    assert limit.seconds(of_rows) == limit_s
