"""A bounded queue between two threads of one process."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from llmd.api.errors import LinkClosedError, LinkTimeoutError

T = TypeVar("T")


class Channel(Generic[T]):
    """Carries items in order, at most ``capacity`` at a time, until it is closed and empty."""

    def __init__(self, name: str, capacity: int) -> None:
        self._name = name
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: T, timeout_s: float) -> None:
        """Append an item once there is room.

        Raises:
            LinkClosedError: the channel is closed.
            LinkTimeoutError: there was no room in time; the item was not appended.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout_s):
                raise LinkTimeoutError(
                    f"{self._name}: the peer took none of {self._capacity} waiting frames within {timeout_s:g} s",
                    hint="the peer is stuck or slower than expected; give it more time",
                )
            if self._closed:
                raise self._closed_error()
            self._items.append(item)
            self._changed.notify_all()

    def get(self, timeout_s: float) -> T:
        """Return the oldest item once there is one.

        Raises:
            LinkClosedError: the channel is closed and empty.
            LinkTimeoutError: no item came in time.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_news, timeout_s):
                raise LinkTimeoutError(
                    f"{self._name}: nothing came within {timeout_s:g} s",
                    hint="the peer is stuck or slower than expected; give it more time",
                )
            if not self._items:
                raise self._closed_error()
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Take no more items. Those inside can still be got."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self) -> list[T]:
        """Close, and return the items that nobody will get now."""
        self.close()  # first: an item put between the two would never be got
        with self._changed:
            left = list(self._items)
            self._items.clear()
        return left

    def _has_room(self) -> bool:
        return self._closed or len(self._items) < self._capacity

    def _has_news(self) -> bool:
        return self._closed or bool(self._items)

    def _closed_error(self) -> LinkClosedError:
        return LinkClosedError(f"{self._name} is closed", hint="connect again")
