"""Points of streams of the simulated device."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from llmd.api.errors import DeviceError
from llmd_backend_cuda.runtime import Timestamp

if TYPE_CHECKING:
    from tests.cuda.simt.runtime import SimtRuntime


class SimtEvent:
    """A point of the stream. While a graph is captured, it is one that is never reached."""

    def __init__(self, runtime: SimtRuntime) -> None:
        self._runtime = runtime
        self._captured = runtime.capturing
        self.is_reached = False
        if not self._captured:
            runtime.enqueue(self.reach)

    def wait(self, timeout_s: float) -> bool:
        """Wait for what was called before."""
        self._runtime.refuse_in_capture("the wait for an event")
        if self._captured:
            raise DeviceError("an event that was recorded in a capture is never reached")
        if timeout_s > 0.0:
            self._runtime.reach_end(self)
        return self.is_reached

    def run(self) -> None:
        """Run what was called before, for the stream of another card."""
        if not self.is_reached:
            self._runtime.run_pending(self)

    def reach(self) -> None:
        """The stream has come this far: copies that waited for it may begin."""
        self.is_reached = True
        self._runtime.begin_copies()


class TimedPoint:
    """A point with the time at which it was reached."""

    reached_s = math.nan

    def seconds_after(self, earlier: Timestamp) -> float:
        """Return the seconds between two points that were reached."""
        assert isinstance(earlier, TimedPoint)
        seconds = self.reached_s - earlier.reached_s
        if math.isnan(seconds):
            raise DeviceError("the time of a point is not known before the stream has reached it")
        return seconds


class SimtTimestamp(TimedPoint, SimtEvent):
    """A point of the stream with its time."""

    def reach(self) -> None:
        """Note the time."""
        self.reached_s = time.perf_counter()
        super().reach()
