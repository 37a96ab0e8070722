"""Counts observed values by bucket, cheaply enough to run for every token."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Buckets as in Prometheus: a value falls into the first bucket whose upper bound is at or above it."""

    __slots__ = ("_counts", "bounds", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """``bounds`` are ascending; a last bucket holds all larger values."""
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Return how many values were at or below each bound, infinity last."""
        reached, result = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            reached += count
            result.append((bound, reached))
        return result
