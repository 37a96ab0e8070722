"""Tracks the requests that use a model, and unloads it some time after the last one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Protocol

Clock = Callable[[], float]


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


Timer = Callable[[float, Callable[[], None]], TimerHandle]
"""Calls a function after a delay in seconds."""


def loop_timer(delay_s: float, call: Callable[[], None]) -> TimerHandle:
    """Set a timer of the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, call)


class ModelLeases:
    """The requests that use one model.

    Calls ``on_idle`` when the last one ends, and ``expire`` when the model has been idle for
    ``keep_alive_s``. A negative ``keep_alive_s`` means that the model stays loaded, 0 that it is unloaded
    after the current request. ``pinned``: the user named the model when the daemon started, so it is not
    unloaded for another model. ``waits_for`` names the models that must be unloaded or become idle before
    this one can be loaded.
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
        self._default_s = keep_alive_s
        self._is_default = True
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
    def use(self, keep_alive_s: float | None = None, *, own_default_s: float | None = None) -> Iterator[None]:
        """Hold the model while a request runs or waits. ``keep_alive_s`` replaces the current keep-alive.

        ``own_default_s`` is the keep-alive of the settings for the name that the request used. It applies
        unless a request or the user has set one.
        """
        self._stop_clock()
        self.users += 1
        if keep_alive_s is not None:
            self.keep_alive_s, self.pinned, self._is_default = keep_alive_s, False, False
        elif own_default_s is not None and self._is_default and not self.pinned:
            self.keep_alive_s = own_default_s
        try:
            yield
        finally:
            self.users -= 1
            self.last_used = self._clock()
            if not self.users:
                self._start_clock()
                self._on_idle()

    def pin(self) -> None:
        """Keep the model loaded until a request or the user says otherwise."""
        self._stop_clock()
        self.keep_alive_s, self.pinned = -1.0, True

    def unpin(self) -> None:
        """Let a pinned model follow the keep-alive of the settings again."""
        if self.pinned:
            self.keep_alive_s, self.pinned, self._is_default = self._default_s, False, True
            self.last_used = self._clock()
            if not self.users:
                self._start_clock()

    def set_default(self, keep_alive_s: float) -> None:
        """Change the keep-alive of the settings. One that a request or the user has set stays."""
        is_default = not self.pinned and self._is_default
        self._default_s = keep_alive_s
        if is_default and keep_alive_s != self.keep_alive_s:
            self._stop_clock()
            self.keep_alive_s = keep_alive_s
            if not self.users:
                self._start_clock()

    @property
    def default_s(self) -> float:
        """The keep-alive of the settings for the model's own name."""
        return self._default_s

    def end(self) -> None:
        """Stop the timer for good: the model is unloaded."""
        self._stop_clock()
        self._expire = _nothing

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the idle model is unloaded; None: it stays loaded."""
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
