"""A bounded queue that can be closed: one direction of a link, or the links that wait at a listener."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from llmd.api import LinkClosedError, LinkTimeoutError

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Holds at most ``size`` items."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    def wait_for_room(self, timeout_s: float) -> None:
        """Wait until an item fits.

        Raises:
            LinkClosedError: the mailbox is closed.
            LinkTimeoutError: it stayed full.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_room, timeout_s):
                raise LinkTimeoutError("the peer did not take the frames in time", hint="try again later")
            self._check_open()

    def put(self, item: T) -> None:
        """Add an item; `wait_for_room` came before.

        Raises:
            LinkClosedError: the mailbox is closed.
        """
        with self._changed:
            self._check_open()
            self._items.append(item)
            self._changed.notify_all()

    def get(self, timeout_s: float) -> T:
        """Return the next item; what was added before the mailbox was closed is still returned.

        Raises:
            LinkClosedError: the mailbox is closed and empty.
            LinkTimeoutError: nothing was added in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._items or self._is_closed, timeout_s):
                raise LinkTimeoutError("nothing arrived in time", hint="check the peer")
            if not self._items:
                self._check_open()
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Refuse further items. Closing twice is allowed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._is_closed or len(self._items) < self._size

    def _check_open(self) -> None:
        if self._is_closed:
            raise LinkClosedError("the link is closed", hint="connect again")
