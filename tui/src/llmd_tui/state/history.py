"""The values of a figure over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, pairwise

KEPT = 6 * 3600
"""Values of a figure that are kept: six hours, one a second."""


class History:
    """Named figures over time. A figure that is missing at a time has a gap there."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._values: dict[str, deque[float | None]] = {}
        self._length = 0

    def __len__(self) -> int:
        """Number of times that are kept."""
        return self._length

    def add(self, figures: dict[str, float]) -> None:
        """Add the figures of one time."""
        self._length = min(self._length + 1, self._kept)
        for name in figures:
            if name not in self._values:
                self._values[name] = deque([None] * (self._length - 1), maxlen=self._kept)
        for name, values in self._values.items():
            values.append(figures.get(name))

    def last(self, name: str) -> float | None:
        """Return the newest value; None if there is none."""
        values = self._values.get(name)
        return values[-1] if values else None

    def tail(self, name: str, count: int) -> Sequence[float | None]:
        """Return the newest ``count`` values, oldest first, padded with gaps at the front."""
        newest = list(islice(reversed(self._values.get(name, ())), count))
        return [None] * (count - len(newest)) + newest[::-1]


def shortened(values: Sequence[float | None], columns: int) -> list[float | None]:
    """Return the mean of each of ``columns`` equal parts; a part without values is a gap."""
    if not values or columns <= 0:
        return []
    edges = [round(part * len(values) / columns) for part in range(columns + 1)]
    parts = [values[start : max(end, start + 1)] for start, end in pairwise(edges)]
    return [_mean(part) for part in parts]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
