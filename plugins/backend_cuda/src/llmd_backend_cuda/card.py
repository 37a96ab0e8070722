"""A card through CuPy's bindings of the CUDA runtime: calls, what their errors mean, and what must be freed.

Of CuPy, only the bindings are imported (``cupy.cuda.runtime`` is the same module): its arrays are not needed,
and importing them takes a second.

A failure that makes the card unusable, such as a kernel that reads an invalid address, raises
`DeviceLostError`. From then on, all calls raise it, and nothing is freed: the driver would fail, too, or wait
for a kernel that never ends. It frees everything when the process ends.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import DeviceError, DeviceLostError, DeviceMemoryError, LlmdError
from llmd_backend_cuda.driver import Driver
from llmd_backend_cuda.runtime import Timestamp
from llmd_backend_cuda.short_sleep import sleep

SPINNING_S = 100e-6
"""Seconds that a wait asks the card without a pause."""

_LONGEST_PAUSE_S = 1e-3

# Numbers of errors, which the CUDA runtime and the driver share.
_OUT_OF_MEMORY = 2
_NOT_READY = 600
_LOST = frozenset({
    4, 709,                    # the context was destroyed
    46, 100, 101,              # the card is taken, or has vanished
    214, 220, 226, 802, 810,   # memory, NVLink, a part of the card or one of NVIDIA's services is broken
    700, 702, 710, 714, 715, 716, 717, 718, 719, 721,  # a kernel failed; its context is unusable
    999,                       # unknown
})  # fmt: skip


class Card:
    """A card, current in the calling thread during each call."""

    def __init__(self, index: int, api: Any, driver: Driver) -> None:
        self.name = f"cuda:{index}"
        self.index = index
        self.api = api
        self.driver = driver
        self._why_lost: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the card is gone, or hangs."""
        return self._why_lost is not None

    def call(self, function: Callable[..., Any], *arguments: object, other: Card | None = None) -> Any:
        """Call a function of the CUDA runtime or the driver; ``other`` takes part in what it does.

        Raises:
            DeviceLostError: the card is gone, or a kernel failed. If ``other`` is gone, it is named instead.
            DeviceMemoryError: there is not enough memory.
            DeviceError: it failed otherwise.
        """
        if self._why_lost is not None:
            raise self.lost(self._why_lost)
        try:
            self.api.setDevice(self.index)
            return function(*arguments)
        except RuntimeError as error:
            if other is not None:
                other.call(other.api.memGetInfo)
            raise self._failure(error) from error

    def free(self, function: Callable[[int], object], value: int) -> None:
        """Free something, unless the card is gone."""
        if not self.is_lost and not sys.is_finalizing():
            with contextlib.suppress(LlmdError):
                self.call(function, value)

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a card that is gone; from now on, nothing is called or freed."""
        self._why_lost = what
        hint = "`sudo dmesg | grep NVRM` may say why; restart llmd to use the card again"
        return DeviceLostError(what, devices=(self.name,), hint=hint)

    def _failure(self, error: RuntimeError) -> DeviceError:
        """Return what an error of the CUDA runtime or the driver means."""
        status = getattr(error, "status", None)
        if status in _LOST:
            return self.lost(str(error))
        if status == _OUT_OF_MEMORY:
            return DeviceMemoryError(f"{self.name}: {error}", hint="lower --kv-memory, --slots or --max-ctx")
        hint = f"update the NVIDIA driver; `llmd check {self.name}` tests the card"
        return DeviceError(f"{self.name}: {error}", hint=hint)


class Owned:
    """Something of the driver, which is freed with the last reference to it."""

    def __init__(self, card: Card, value: int, free: Callable[[int], object]) -> None:
        self.card = card
        self.value = value
        self._free = free

    def __del__(self) -> None:
        self.card.free(self._free, self.value)


class CardMemory(Owned):
    """A range of the card's memory."""

    def __init__(self, card: Card, pointer: int, num_bytes: int) -> None:
        super().__init__(card, pointer, card.api.free)
        self.pointer = pointer
        self.num_bytes = num_bytes


class PinnedMemory(Owned):
    """A range of main memory that the card copies by itself."""

    def __init__(self, card: Card, address: int, num_bytes: int) -> None:
        super().__init__(card, address, card.api.freeHost)
        data = {"shape": (num_bytes,), "typestr": "|u1", "data": (address, False)}
        self.__array_interface__ = {"version": 3, **data}


def is_pinned(array: NDArray[np.generic]) -> bool:
    """Whether an array refers to `PinnedMemory`."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, PinnedMemory)


class CardEvent(Owned):
    """A point of a stream."""

    def __init__(self, card: Card, event: int) -> None:
        super().__init__(card, event, card.api.eventDestroy)

    @classmethod
    def recorded(cls, card: Card, stream: Owned, flags: int) -> Self:
        """Return the point of a stream after everything that it was given before; ``flags`` as in CUDA.

        Raises:
            DeviceError: the card failed.
        """
        event = cls(card, card.call(card.api.eventCreateWithFlags, flags))
        card.call(card.api.eventRecord, event.value, stream.value)
        return event

    def wait(self, timeout_s: float) -> bool:
        """Wait until the stream has reached it; return False if that took longer.

        It asks the card again and again, since CUDA's own wait has no limit. The pauses grow: the answer is
        late by at most a hundredth of the time and some 10 µs, in which Linux wakes a thread up.

        Raises:
            DeviceLostError: the card is gone, or a kernel failed.
        """
        start_s = time.perf_counter()
        while status := self.card.call(self.card.api.eventQuery, self.value):
            if status != _NOT_READY:
                self.card.call(self.card.api.check_status, status)
            waited_s = time.perf_counter() - start_s
            if waited_s >= timeout_s:
                return False
            if waited_s > SPINNING_S:
                sleep(min(waited_s / 100, _LONGEST_PAUSE_S, timeout_s - waited_s))
        return True

    def seconds_after(self, earlier: Timestamp) -> float:
        """Return the seconds since an earlier event. The stream has reached both, and both keep their time.

        Raises:
            DeviceError: the card failed.
        """
        assert isinstance(earlier, CardEvent), "the event is of another runtime"
        milliseconds: float = self.card.call(self.card.api.eventElapsedTime, earlier.value, self.value)
        return milliseconds / 1e3
