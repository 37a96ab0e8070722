"""When the steps of a null stage run, on the clock of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec


def _at_once(earliest_s: float, _seconds: float) -> float:
    return earliest_s


class NullRun(msgspec.Struct, eq=False):
    """A step on the timeline."""

    submitted_at: float
    layers_s: float
    """Seconds that the layers take."""
    fed_from: NullRun | None
    """The step whose tokens this one needs."""
    waits: bool
    """Whether late edits or masks are missing."""
    completed_at: float = 0.0
    """When the last of them were applied."""
    layers_end: float | None = None
    """When the layers are done; None: not known, because a step before it still waits."""

    @property
    def ready_at(self) -> float | None:
        """When the results are there; None: not known yet."""
        if self.layers_end is None or self.waits:
            return None
        return max(self.layers_end, self.completed_at)


class NullTimeline:
    """The queue of a device, which runs the layers of its steps one after the other.

    Layers begin once those of the step before have ended, and once the results
    of the step that they are fed from are there. Late edits and masks are applied in no time, after the
    layers. ``idle_s`` is the time for which the device has no layers to run, between the first step and the
    last.
    """

    def __init__(self, begin: Callable[[float, float], float] = _at_once) -> None:
        """``begin`` returns when layers begin that could at a time and take some seconds."""
        self.idle_s = 0.0
        self._begin = begin
        self._busy_until: float | None = None
        self._queue: deque[NullRun] = deque()

    def submit(self, now: float, layers_s: float, fed_from: NullRun | None, *, waits: bool) -> NullRun:
        """Queue a step; ``waits``: it has late or masked rows."""
        run = NullRun(now, layers_s, fed_from, waits)
        self._queue.append(run)
        self._advance()
        return run

    def complete(self, run: NullRun, now: float) -> None:
        """Note that late edits and masks have all been applied, or that the step is given up."""
        if run.waits:
            run.waits, run.completed_at = False, now
            self._advance()

    def _advance(self) -> None:
        """Run all layers whose beginning is known."""
        while self._queue:
            run = self._queue[0]
            fed_at = run.submitted_at if run.fed_from is None else run.fed_from.ready_at
            if fed_at is None:
                return
            begin = max(run.submitted_at, fed_at)
            if self._busy_until is not None:
                self.idle_s += max(0.0, begin - self._busy_until)
                begin = max(begin, self._busy_until)
            begin = self._begin(begin, run.layers_s)
            self._busy_until = run.layers_end = begin + run.layers_s
            run.fed_from = None  # else each step would hold all steps before it
            self._queue.popleft()
