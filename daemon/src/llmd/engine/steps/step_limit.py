"""How long steps take, and how long one may take before its device counts as lost."""

from __future__ import annotations

import time
from collections.abc import Callable

LEAST_S = 30.0
MOST_S = 600.0
"""The limit while nothing has been measured. The first step of a large model on a slow device takes long."""

FACTOR = 20
"""How much longer than the longest step so far a step may take."""

Clock = Callable[[], float]


class LongestStep:
    """The longest step so far. The first is left out: it may read all weights from a disk."""

    def __init__(self, *, uses_first: bool = False) -> None:
        """``uses_first``: the first counts until the second has ended."""
        self._uses_first = uses_first
        self._num_steps = 0
        self._longest_s: float | None = None
        self._rows = 1

    def expected_s(self, num_rows: int) -> float | None:
        """Return how long a step of ``num_rows`` rows takes at most, by the rows and time of the longest.

        None: none was measured.
        """
        if self._longest_s is None:
            return None
        return self._longest_s * max(1.0, num_rows / self._rows)

    def took(self, num_rows: int, seconds: float) -> None:
        """Record a step."""
        self._num_steps += 1
        if self._num_steps == 1 and not self._uses_first:
            return
        if self._num_steps <= 2 or self._longest_s is None or seconds > self._longest_s:
            self._longest_s, self._rows = seconds, max(num_rows, 1)


class StepTimes:
    """Measures the steps of a pipeline, from their submission to their results."""

    def __init__(self, clock: Clock = time.monotonic, processor_clock: Clock = time.process_time) -> None:
        """``processor_clock`` counts the processor time of all threads."""
        self.clock = clock
        self.processor_clock = processor_clock
        self.waiting = LongestStep()
        """By the clock."""
        self.computing = LongestStep(uses_first=True)
        """By processor time; a step that computes with several threads does not take longer for it."""

    def limit_s(self, num_rows: int) -> float:
        """Return how long to wait for a step: a small model on a fast device is found to hang within half a
        minute.
        """
        expected_s = self.waiting.expected_s(num_rows)
        if expected_s is None:
            return MOST_S
        return min(max(FACTOR * expected_s, LEAST_S), MOST_S)


class StepTimer:
    """Measures one step, from now on."""

    def __init__(self, times: StepTimes, num_rows: int) -> None:
        self._times = times
        self._num_rows = num_rows
        self._began, self._processor_began = times.clock(), times.processor_clock()

    @property
    def limit_s(self) -> float:
        """How long to wait for the step."""
        return self._times.limit_s(self._num_rows)

    def stop(self) -> None:
        """Record that the step has its results."""
        waited_s = self._times.clock() - self._began
        used_s = self._times.processor_clock() - self._processor_began
        self._times.waiting.took(self._num_rows, waited_s)
        self._times.computing.took(self._num_rows, min(used_s, waited_s))
