"""When the card worked on a step: marks on its streams, turned into times of the host's clock."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llmd.api.spans import Span, SpanKind
from llmd_backend_cuda.runtime import CopyStream, Runtime, Timestamp

_LONGEST_WAIT_S = 60.0
_TRIES = 5
_ANCHOR_AGE_S = 1.0
"""How old a `StreamClock` may get before it is set again: clocks drift apart by some 20 µs a second."""


class StreamClock:
    """The host's clock at one point of the stream; all others follow from the time between them."""

    def __init__(self, runtime: Runtime) -> None:
        """Wait for the stream, and note the time.

        Raises:
            DeviceLostError: the stream did not get there.
        """
        self._runtime = runtime
        self._set()

    def refresh(self) -> None:
        """Note the time again if that is long ago. The stream should be idle: this waits for it."""
        if time.perf_counter() - self._reached_s > _ANCHOR_AGE_S:
            self._set()

    def seconds(self, mark: Timestamp) -> float:
        """Return when the stream has reached a mark, on the clock of ``time.perf_counter``."""
        return self._reached_s + mark.seconds_after(self._mark)

    def _set(self) -> None:
        """Note the time of the mark that was reached soonest, of some: other threads may come between."""
        shortest_s = math.inf
        for _ in range(_TRIES):
            before_s, mark = time.perf_counter(), self._runtime.timestamp()
            if not mark.wait(_LONGEST_WAIT_S):
                raise self._runtime.lost(f"the stream did not become idle within {_LONGEST_WAIT_S:g} s")
            took_s = time.perf_counter() - before_s
            if took_s < shortest_s:
                shortest_s, self._mark, self._reached_s = took_s, mark, before_s + took_s / 2


class StepMarks:
    """The pieces of one step on the stream; none unless there is a runtime."""

    def __init__(self, runtime: Runtime | None) -> None:
        self._runtime = runtime
        self._last: Timestamp | None = None
        self._pieces: list[tuple[SpanKind, str, Timestamp, Timestamp]] = []

    def start(self) -> None:
        """Mark where the next piece begins."""
        if self._runtime is not None:
            self._last = self._runtime.timestamp()

    def stop(self, kind: SpanKind, name: str) -> None:
        """Mark the end of a piece: what was queued since the last mark."""
        if self._runtime is not None and self._last is not None:
            begin, self._last = self._last, self._runtime.timestamp()
            self._pieces.append((kind, name, begin, self._last))

    @contextmanager
    def around(self, copies: CopyStream, kind: SpanKind, name: str) -> Iterator[None]:
        """Mark the begin and the end of what is queued on a stream of copies meanwhile, for a piece."""
        begin = None if self._runtime is None else copies.timestamp()
        yield
        if begin is not None:
            self._pieces.append((kind, name, begin, copies.timestamp()))

    def spans(self, clock: StreamClock) -> Sequence[Span]:
        """Return the pieces, which the stream has all reached."""
        seconds = clock.seconds
        return [Span(kind, name, seconds(begin), seconds(end)) for kind, name, begin, end in self._pieces]
