"""How long one model stays loaded: who uses it, and a clock that runs only while nobody does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Protocol

Clock = Callable[[], float]


class TimerHandle(Protocol):
    """A timer that has been set."""

    def cancel(self) -> None: ...


Timer = Callable[[float, Callable[[], None]], TimerHandle]
"""Calls a function after so many seconds."""


def loop_timer(delay_s: float, call: Callable[[], None]) -> TimerHandle:
    """A timer of the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, call)


class ModelLeases:
    """The lease table of one model. ``expire`` is called when it has been idle for ``keep_alive_s``, ``on_idle`` as
    soon as it is.

    A negative ``keep_alive_s`` is for ever, 0 until the request in hand ends. ``pinned``: the user named the model when
    the daemon was started, and no other model may take its place. ``waits_for`` names the models that must leave or
    answer before it can be loaded.
    """

    def __init__(
        self,
        keep_alive_s: float,
        expire: Callable[[], None],
        *,
        on_idle: Callable[[], None],
        timer: Timer = loop_timer,
        clock: Clock = time.monotonic,
    ) -> None:
        self.keep_alive_s = keep_alive_s
        self.pinned = False
        self.users = 0
        self.waits_for: tuple[str, ...] = ()
        self.last_used = clock()
        self._expire = expire
        self._on_idle = on_idle
        self._timer = timer
        self._clock = clock
        self._handle: TimerHandle | None = None

    @contextlib.contextmanager
    def use(self, keep_alive_s: float | None = None) -> Iterator[None]:
        """Hold the model while a request runs or waits; ``keep_alive_s`` replaces what held so far."""
        self._stop_clock()
        self.users += 1
        if keep_alive_s is not None:
            self.keep_alive_s, self.pinned = keep_alive_s, False
        try:
            yield
        finally:
            self.users -= 1
            self.last_used = self._clock()
            if not self.users:
                self._start_clock()
                self._on_idle()

    def pin(self) -> None:
        """Keep the model for ever, until a request or the user says otherwise."""
        self._stop_clock()
        self.keep_alive_s, self.pinned = -1.0, True

    def end(self) -> None:
        """Stop the clock for good: the model is unloaded."""
        self._stop_clock()
        self._expire = _nothing

    @property
    def remaining_s(self) -> float | None:
        """How long it stays if nobody asks again; None for ever."""
        if self.keep_alive_s < 0:
            return None
        idle_s = 0.0 if self.users else self._clock() - self.last_used
        return max(0.0, self.keep_alive_s - idle_s)

    def _start_clock(self) -> None:
        if self.keep_alive_s >= 0:
            self._handle = self._timer(self.keep_alive_s, self._expire)

    def _stop_clock(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _nothing() -> None:
    pass
