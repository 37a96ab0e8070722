"""A live feed of the daemon's events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Self

from msgspec import Struct

from llmd.server.errors import BusyError
from llmd.server.http.json_line import encode_json

KEPT = 1024
MAX_WATCHERS = 64


class Event(Struct, frozen=True):
    """An event. Its fields are one JSON object: many small ones that outlive a request fragment memory."""

    number: int
    """Rises by one from event to event."""
    type: str
    data: bytes
    """The JSON that a watcher gets."""
    level: int = 0
    """For a log record: a level of `logging`."""

    @classmethod
    def of(cls, number: int, kind: str, fields: dict[str, Any], level: int = 0) -> Self:
        """Return the event with these fields, its type and its number."""
        return cls(number, kind, encode_json({"type": kind, "number": number, **fields}), level)


class Feed:
    """The last events, shared by all watchers. A slow watcher costs no time or memory, but misses events."""

    def __init__(self, kept: int = KEPT, max_bytes: int | None = None) -> None:
        """The last ``kept`` events are kept, and no more than ``max_bytes`` (None: no limit)."""
        self._events: deque[Event] = deque()
        self._kept = kept
        self._max_bytes = max_bytes
        self._bytes = 0
        self._last = 0
        self._watchers: set[Watcher] = set()

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def emit(self, kind: str, fields: dict[str, Any], level: int = 0) -> None:
        """Send an event to every watcher."""
        self._last += 1
        event = Event.of(self._last, kind, fields, level)
        self._events.append(event)
        self._bytes += len(event.data)
        while len(self._events) > self._kept or (
            self._max_bytes is not None and self._bytes > self._max_bytes
        ):
            self._bytes -= len(self._events.popleft().data)
        for watcher in self._watchers:
            watcher.wake()

    @property
    def kept(self) -> tuple[Event, ...]:
        """The events that are still kept, oldest first."""
        return tuple(self._events)

    @contextmanager
    def watch(self, after: int | None = None) -> Iterator[Watcher]:
        """Watch from now on, or from after the event with the number ``after``.

        Raises:
            BusyError: too many clients are watching.
        """
        if len(self._watchers) >= MAX_WATCHERS:
            raise BusyError(
                f"{MAX_WATCHERS} clients are already watching events",
                code="too_many_watchers",
                hint="close one of them",
                retry_after_s=60,
            )
        watcher = Watcher(self, self._last if after is None else min(after, self._last))
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def since(self, number: int) -> list[Event] | None:
        """Return the events after a number; None if some of them are no longer kept."""
        missing = self._last - number
        if missing > len(self._events):
            return None
        # Numbers have no gaps, so that the events are the last ones: a watcher that keeps up scans no others.
        return list(islice(reversed(self._events), max(0, missing)))[::-1]

    @property
    def last(self) -> int:
        """The number of the latest event."""
        return self._last


class Watcher:
    """A position in the feed."""

    def __init__(self, feed: Feed, place: int) -> None:
        self._feed = feed
        self._place = place
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def next(self) -> list[Event] | None:
        """Wait for events; None if some were missed. The next call continues after the latest event."""
        while True:
            self._woken.clear()
            events = self._feed.since(self._place)
            self._place = self._feed.last
            if events is None or events:
                return events
            await self._woken.wait()
