"""Timestamps of the device, turned into times of the host's clock."""

from __future__ import annotations

import math
import time

from llmd_backend_vulkan.runtime import Runtime

_TRIES = 5
_ANCHOR_AGE_S = 1.0
"""How old the known point of a `StepClock` may get: clocks drift apart by some 20 µs a second."""


class StepClock:
    """The host's clock at one point of each queue; other times follow from the ticks between them."""

    def __init__(self, runtime: Runtime) -> None:
        """Note the time; nothing if the host waits for the device anyway, without our additions to Kompute.

        Raises:
            DeviceLostError: the device is gone.
        """
        self._runtime = runtime
        self._anchors: dict[int, tuple[int, float]] = {}
        self._set_s = -math.inf
        self.refresh()

    def refresh(self) -> None:
        """Note the time again if that is long ago. The device should be idle: this waits for it."""
        if not self._runtime.has_additions or time.perf_counter() - self._set_s < _ANCHOR_AGE_S:
            return
        for queue in range(len(self._runtime.device.queues)):
            self._anchors[queue] = min(self._measured(queue) for _ in range(_TRIES))[1:]
        self._set_s = time.perf_counter()

    def seconds(self, queue: int, ticks: int) -> float:
        """Return when a queue was at some ticks, on the clock of ``time.perf_counter``."""
        device = self._runtime.device
        known, at_s = self._anchors[queue]
        return at_s + device.tick_s * signed(ticks - known, device.timestamp_bits)

    def _measured(self, queue: int) -> tuple[float, int, float]:
        """Return how long a measurement took (short ones are exact), ticks of a queue, and their time."""
        before_s = time.perf_counter()
        ticks = self._runtime.ticks(queue)
        took_s = time.perf_counter() - before_s
        return took_s, ticks, before_s + took_s / 2


def signed(difference: int, bits: int) -> int:
    """Return the difference of two close times that have ``bits`` bits and wrap around."""
    half = 1 << (bits - 1)
    return (difference + half) % (2 * half) - half
