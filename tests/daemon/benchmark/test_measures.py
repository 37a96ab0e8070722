"""Measures of hand-made timelines match those computed by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.benchmark.measures import (
    errors,
    figures,
    most_at_once,
    peak_tokens_per_s,
    samples_ms,
    statistics_of,
)
from llmd.benchmark.timeline import Outcome

# Sent at 10 s: first output after 0.5 s, then after 0.1, 0.2 and 0.3 s: 4 tokens until 1.1 s.
FIRST = Outcome(100, 10.0, 0.25, 0.5, (0.1, 0.2, 0.3), 1.1, 4, "abcd")
# Sent at 11 s, before the first ended: 2 tokens in 1 s.
SECOND = Outcome(50, 11.0, 0.0, 0.2, (0.8,), 1.0, 2, "ab")
# One token, after both had ended.
THIRD = Outcome(10, 12.5, 0.0, 0.5, (), 0.5, 1, "a")
FAILED = Outcome(1000, 10.0, 3.0, 0.1, (9.0,), 9.1, 500, "x", "503: full")
ALL = (FIRST, SECOND, FAILED, THIRD)


def test_throughput_counts_what_was_answered_alone() -> None:
    found = figures(ALL, 4.0, {})
    assert (found.duration, found.completed, found.failed) == (4.0, 3, 1)
    assert (found.total_input_tokens, found.total_output_tokens) == (160, 7)
    assert (found.request_throughput, found.output_throughput) == (0.75, 1.75)
    assert found.total_token_throughput == 41.75
    assert found.request_goodput is None


@pytest.mark.parametrize(
    ("goals_ms", "good"),
    [
        ({"ttft": 500.0}, 3),
        ({"ttft": 499.0}, 1),
        ({"tpot": 200.1}, 2),  # 0.6 s / 3, 0.8 s / 1, and no TPOT, which meets any goal
        ({"e2el": 1000.0}, 2),
        ({"ttft": 300.0, "e2el": 999.0}, 0),
    ],
)
def test_a_good_request_keeps_every_goal(goals_ms: dict[str, float], good: int) -> None:
    assert figures(ALL, 4.0, goals_ms).request_goodput == good / 4.0


def test_times_are_in_milliseconds_and_one_token_has_no_time_per_token() -> None:
    found = samples_ms(ALL)
    assert found["ttft"] == [500.0, 200.0, 500.0]
    assert found["tpot"] == pytest.approx([200.0, 800.0])
    assert found["itl"] == pytest.approx([100.0, 200.0, 300.0, 800.0])
    assert found["e2el"] == [1100.0, 1000.0, 500.0]
    assert found["client_queue_time"] == [250.0, 0.0, 0.0]
    assert found["e2el_including_client_queue"] == [1350.0, 1000.0, 500.0]


def test_statistics_have_their_names_and_interpolate_percentiles() -> None:
    assert statistics_of("ttft", [1.0, 2.0, 3.0, 6.0], (50.0, 90.0, 99.9)) == pytest.approx(
        {
            "mean_ttft_ms": 3.0,
            "median_ttft_ms": 2.5,
            "std_ttft_ms": 3.5**0.5,
            "p50_ttft_ms": 2.5,
            "p90_ttft_ms": 5.1,
            "p99.9_ttft_ms": 5.991,
        }
    )


def test_statistics_of_nothing_are_zero() -> None:
    assert set(statistics_of("itl", [], (99.0,)).values()) == {0.0}
    found = figures((), 1.0, {"ttft": 1.0})
    assert (found.completed, found.max_output_tokens_per_s, found.max_concurrent_requests) == (0, 0.0, 0)


def test_the_peak_is_that_of_any_second() -> None:
    # At 0.5 0.6 0.8 1.1, at 1.2 2.0, at 3.0.
    assert peak_tokens_per_s([FIRST, SECOND, THIRD], 4.0) == 5.0
    assert peak_tokens_per_s([THIRD], 4.0) == 1.0


def test_a_chunk_with_several_tokens_counts_as_often() -> None:
    twice = structs.replace(FIRST, output_len=8)
    assert peak_tokens_per_s([twice, SECOND], 4.0) == 9.0


def test_the_peak_is_never_below_the_throughput() -> None:
    found = figures([THIRD], 0.5, {})
    assert found.max_output_tokens_per_s == found.output_throughput == 2.0


def test_a_request_that_begins_as_another_ends_runs_after_it() -> None:
    def at(start_s: float, latency_s: float) -> Outcome:
        return Outcome(1, start_s, latency_s=latency_s)

    assert most_at_once([at(0.0, 1.0), at(1.0, 1.0), at(2.0, 1.0)]) == 1
    assert most_at_once([at(0.0, 1.5), at(1.0, 1.0), at(1.25, 1.0)]) == 3


def test_errors_are_counted_the_most_frequent_first() -> None:
    def failed(error: str) -> Any:
        return Outcome(1, 0.0, error=error)

    assert list(errors([failed("a"), failed("b"), FIRST, failed("b")]).items()) == [("b", 2), ("a", 1)]
