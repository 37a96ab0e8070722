"""A bounded queue between two threads of one process."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from llmd.api.errors import LinkClosedError, LinkTimeoutError

T = TypeVar("T")


class Channel(Generic[T]):
    """A FIFO queue of at most ``capacity`` items. After `close`, remaining items can still be read."""

    def __init__(self, name: str, capacity: int) -> None:
        self._name = name
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: T, timeout_s: float) -> None:
        """Append an item; wait while the channel is full.

        Raises:
            LinkClosedError: the channel is closed.
            LinkTimeoutError: the channel stayed full; the item was not appended.
        """
        with self._changed:
            self.wait_for_room(timeout_s)
            self._items.append(item)
            self._changed.notify_all()

    def wait_for_room(self, timeout_s: float) -> None:
        """Wait while the channel is full.

        Raises:
            LinkClosedError: the channel is closed.
            LinkTimeoutError: the channel stayed full.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout_s):
                raise LinkTimeoutError(
                    f"{self._name}: the peer read none of {self._capacity} queued frames within {timeout_s:g} s",
                    hint="the peer is stuck or slower than expected; give it more time",
                )
            if self._closed:
                raise self._closed_error()

    def get(self, timeout_s: float) -> T:
        """Return the oldest item; wait while the channel is empty.

        Raises:
            LinkClosedError: the channel is closed and empty.
            LinkTimeoutError: no item arrived in time.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_news, timeout_s):
                raise LinkTimeoutError(
                    f"{self._name}: nothing arrived within {timeout_s:g} s",
                    hint="the peer is stuck or slower than expected; give it more time",
                )
            if not self._items:
                raise self._closed_error()
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Accept no more items. Queued items can still be read."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self) -> list[T]:
        """Close the channel and return the unread items."""
        self.close()  # first, so that no item can be added after the list is taken
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
