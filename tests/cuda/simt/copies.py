"""A stream of copies of the simulated device, which finds copies that are not waited for.

A copy begins as early as it may on a device: when the points that it waits for are reached. From then on,
the memory is poisoned, so that a kernel that still reads what was there before gets wrong numbers. It ends as
late as it may: when something waits for it. A kernel that does not wait finds the poison.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import DeviceError
from llmd_backend_cuda.runtime import Event, Memory
from tests.cuda.simt.build import engine
from tests.cuda.simt.events import SimtEvent, TimedPoint

if TYPE_CHECKING:
    from tests.cuda.simt.runtime import SimtRuntime

POISON = 0xFF
"""Not a number, in all float formats."""


class _Item(msgspec.Struct):
    """Something that a stream of copies does."""

    end: Callable[[], None]
    begin: Callable[[], None] | None = None
    waits_for: SimtEvent | None = None
    begun_s: float = 0.0


class SimtCopyEvent(TimedPoint):
    """A point of a stream of copies."""

    def __init__(self, copies: SimtCopies) -> None:
        self.copies = copies
        self.is_reached = False
        self._was_asked = False

    def wait(self, timeout_s: float) -> bool:
        """Wait for the copies before it. Without time, end those that have begun if the host asks again."""
        self.copies.runtime.refuse_in_capture("the wait for an event")
        if timeout_s > 0.0:
            self.copies.runtime.reach_end()
            self.copies.end(self)
        elif self._was_asked:
            self.copies.end_begun(self)
        self._was_asked = True
        return self.is_reached


class SimtCopies:
    """Implements ``CopyStream``."""

    def __init__(self, runtime: SimtRuntime) -> None:
        self.runtime = runtime
        self._items: deque[_Item] = deque()
        self._num_begun = 0
        self._time_s = 0.0
        """When the last item that has ended did so; what follows has begun no earlier."""

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Copy a pinned array to memory."""
        self.runtime.check_copy(array, memory, offset)
        if not self.runtime.is_pinned(array):
            raise DeviceError("a stream of copies copies pinned memory only")
        to = memory.pointer + offset

        def begin() -> None:
            engine().simt_allow_host(memory.pointer)
            ctypes.memset(to, POISON, array.nbytes)

        def end() -> None:
            engine().simt_allow_host(memory.pointer)
            ctypes.memmove(to, array.ctypes.data, array.nbytes)
            self._time_s = time.perf_counter()

        self._add(_Item(end, begin))

    def wait_for(self, event: Event) -> None:
        """Let what follows begin once the runtime's stream has reached a point."""
        assert isinstance(event, SimtEvent)
        self._add(_Item(lambda: None, waits_for=event))

    def record(self) -> SimtCopyEvent:
        """Return the point after everything that was called before."""
        self.runtime.refuse_in_capture("a point of another stream")
        event = SimtCopyEvent(self)

        def end() -> None:
            event.is_reached = True
            event.reached_s = self._time_s

        self._add(_Item(end))
        return event

    timestamp = record

    def begin(self) -> None:
        """Begin everything that waits for nothing any more."""
        for item in list(self._items)[self._num_begun :]:
            if item.waits_for is not None and not item.waits_for.is_reached:
                return
            item.begun_s = time.perf_counter()
            if item.begin is not None:
                item.begin()
            self._num_begun += 1

    def end(self, event: SimtCopyEvent) -> None:
        """End everything up to a point."""
        while not event.is_reached:
            if not self._num_begun:
                raise DeviceError("a stream waits for a copy that waits for it")
            self._end_first()
        for item in list(self._items)[: self._num_begun]:
            if item.begin is not None:
                item.begin()  # what has ended may have been in the same memory

    def end_begun(self, event: SimtCopyEvent) -> None:
        """End everything up to a point if all of it has begun."""
        while not event.is_reached and self._num_begun:
            self._end_first()

    def _end_first(self) -> None:
        item = self._items.popleft()
        self._time_s = max(self._time_s, item.begun_s)
        item.end()
        self._num_begun -= 1

    def _add(self, item: _Item) -> None:
        self._items.append(item)
        self.begin()
