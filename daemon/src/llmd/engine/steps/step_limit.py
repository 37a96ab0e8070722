"""How long to wait for a step before its device counts as lost."""

from __future__ import annotations

LEAST_S = 30.0
MOST_S = 600.0
"""The limit while nothing has been measured. The first step of a large model on a slow device takes long."""

FACTOR = 20
"""How much longer than the longest wait so far a step may take."""


class StepLimit:
    """Follows the waits so far: a small model on a fast device is found to hang within half a minute."""

    def __init__(self) -> None:
        self._longest_s: float | None = None
        self._rows = 1  # of the longest wait

    def seconds(self, num_rows: int) -> float:
        """Return how long to wait for a step of ``num_rows`` rows, at most in proportion to its rows."""
        if self._longest_s is None:
            return MOST_S
        expected_s = self._longest_s * max(1.0, num_rows / self._rows)
        return min(max(FACTOR * expected_s, LEAST_S), MOST_S)

    def waited(self, num_rows: int, seconds: float) -> None:
        """Record the wait for a step."""
        if self._longest_s is None or seconds > self._longest_s:
            self._longest_s, self._rows = seconds, max(num_rows, 1)
