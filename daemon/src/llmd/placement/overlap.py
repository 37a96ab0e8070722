"""How long steps take that are computed at the same time, each on another device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

StageTimes = Sequence[tuple[Hashable, float]]
"""For each stage of a step, what computes it and the seconds that takes."""


class BusyTimes:
    """When a device computes. It is promised to steps in the order in which they are submitted; a later step
    may fill a gap.
    """

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def reserve(self, earliest_s: float, seconds: float) -> float:
        """Return the first time from which on the device is free for some seconds, and take them."""
        for begin_s, end_s in self._spans:
            if earliest_s + seconds <= begin_s:
                break
            earliest_s = max(earliest_s, end_s)
        self._spans = sorted([*self._spans, (earliest_s, earliest_s + seconds)])
        return earliest_s

    def forget(self, before_s: float) -> None:
        """Drop what ended before a time, at which nothing will be reserved any more."""
        self._spans = [span for span in self._spans if span[1] > before_s]


def overlapped_seconds(steps: Sequence[StageTimes], depth: int) -> float:
    """Return the seconds until the last of some steps has passed all its stages.

    A step goes from stage to stage. It is submitted once the step ``depth`` before it has passed all stages.
    """
    busy: dict[Hashable, BusyTimes] = defaultdict(BusyTimes)
    ends: list[float] = []
    for number, stages in enumerate(steps):
        now_s = ends[number - depth] if number >= depth else 0.0
        for device, seconds in stages:
            now_s = busy[device].reserve(now_s, seconds) + seconds
        ends.append(now_s)
    return max(ends, default=0.0)
