from __future__ import annotations

from llmd.server.telemetry.histogram import Histogram


def test_a_value_counts_in_every_bucket_from_its_own_on() -> None:
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 1, 1.5, 5, 9):
        histogram.observe(value)
    assert histogram.cumulative() == [(1, 2), (2, 3), (5, 4), (float("inf"), 5)]
    assert (histogram.total, histogram.count) == (17, 5)


def test_an_empty_one_has_all_buckets() -> None:
    assert Histogram((1,)).cumulative() == [(1, 0), (float("inf"), 0)]
