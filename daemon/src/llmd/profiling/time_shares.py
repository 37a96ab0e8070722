"""The time of a measurement, divided among its parts."""

from __future__ import annotations

import time


class TimeShares:
    """Seconds for a known number of parts. What one of them takes too much, those after it have less."""

    def __init__(self, budget_s: float, count: int) -> None:
        """Begin now; ``count`` parts take shares."""
        self._end_s = time.perf_counter() + budget_s
        self._left = count

    def take(self, count: int = 1) -> float:
        """Return the seconds that the next ``count`` parts may take together; 0 if none are left."""
        left_s = max(0.0, self._end_s - time.perf_counter())
        share_s = left_s * count / max(count, self._left)
        self._left -= count
        return share_s
