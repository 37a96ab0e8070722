from __future__ import annotations

import pytest

from llmd.engine.steps.step_limit import LEAST_S, MOST_S, LongestStep, StepTimer, StepTimes


def test_the_first_step_may_take_long_and_does_not_count() -> None:
    times = StepTimes()
    assert (times.limit_s(1), times.waiting.expected_s(1)) == (MOST_S, None)
    times.waiting.took(1, 99.0)
    assert (times.limit_s(1), times.waiting.expected_s(1)) == (MOST_S, None)
    times.waiting.took(1, 0.1)
    assert (times.limit_s(1), times.waiting.expected_s(1)) == (LEAST_S, 0.1)


def test_the_first_step_may_count_until_the_second_has_ended() -> None:
    longest = LongestStep(uses_first=True)
    expected = []
    for seconds in (5.0, 1.0, 0.5, 2.0):
        longest.took(1, seconds)
        expected.append(longest.expected_s(1))
    assert expected == [5.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize(("of_rows", "expected_s"), [(1, 8.0), (4, 8.0), (10, 20.0)])
def test_a_step_is_expected_to_take_as_long_as_the_longest_in_proportion_to_its_rows(
    of_rows: int, expected_s: float
) -> None:
    longest = LongestStep()
    for rows, seconds in ((1, 99.0), (2, 3.0), (4, 8.0), (100, 7.0)):
        longest.took(rows, seconds)
    assert longest.expected_s(of_rows) == expected_s


@pytest.mark.parametrize(
    ("longest_s", "of_rows", "limit_s"),
    [
        (0.1, 4, LEAST_S),
        (4.0, 4, 80.0),
        (4.0, 1, 80.0),
        (4.0, 8, 160.0),
        (4.0, 400, MOST_S),
        (MOST_S, 4, MOST_S),
    ],
    ids=["fast", "slow", "fewer rows", "more rows", "many rows", "very slow"],
)
def test_the_limit_follows_the_longest_step(longest_s: float, of_rows: int, limit_s: float) -> None:
    times = StepTimes()
    for seconds in (2 * longest_s, longest_s / 2, longest_s, longest_s / 3):
        times.waiting.took(4, seconds)
    assert times.limit_s(of_rows) == limit_s


@pytest.mark.parametrize(
    ("threads", "computed_s"), [(0.0, 0.0), (0.5, 1.5), (8.0, 3.0)], ids=["waits", "busy machine", "threads"]
)
def test_a_timer_measures_a_step_by_the_clock_and_by_processor_time(
    threads: float, computed_s: float
) -> None:
    now = 5.0
    times = StepTimes(lambda: now, lambda: threads * now)
    for _ in range(2):
        timer = StepTimer(times, 2)
        assert timer.limit_s == MOST_S
        now += 3.0
        timer.stop()
    assert times.waiting.expected_s(2) == 3.0
    assert times.computing.expected_s(2) == computed_s
    assert timer.limit_s == 60.0
