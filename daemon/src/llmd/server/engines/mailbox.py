"""Messages from an engine for the sequences of one request, queued for one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, Protocol, TypeVar

from llmd.api.errors import LlmdError
from llmd.api.results import Started


class SequenceMessage(Protocol):
    @property
    def request_id(self) -> int: ...


Item = TypeVar("Item", bound=SequenceMessage)


class Canceller(Protocol):
    """The part of a supervisor that a mailbox uses."""

    def cancel(self, request_id: int) -> None: ...


class Mailbox(Generic[Item]):
    """Queues messages from a supervisor for one reader. Use on the event loop only.

    ``request_ids`` are the ids of the sequences, by index. ``cached_tokens`` maps an index to the number
    of tokens that were in the prefix cache when the sequence began to run.
    """

    def __init__(self, request_ids: tuple[int, ...], control: Canceller) -> None:
        self._index = {request_id: index for index, request_id in enumerate(request_ids)}
        self._items: deque[Item] = deque()
        self._canceller = control
        self.cached_tokens: dict[int, int] = {}
        self._error: LlmdError | None = None
        self._changed = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None

    async def next(self) -> tuple[int, Item]:
        """Return the index of a sequence and its next message.

        Raises:
            LlmdError: the error that ended one of the requests; the others are cancelled.
        """
        while not self._items:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        item = self._items.popleft()
        self._taken(item)
        return self._index[item.request_id], item

    def close(self) -> None:
        """Cancel all remaining sequences."""
        for request_id in tuple(self._index):
            self._canceller.cancel(request_id)
        self._index.clear()
        if self._expiry is not None:
            self._expiry.cancel()

    def expire_at(self, when: float, error: LlmdError) -> None:
        """Cancel every sequence at a time of the event loop's clock; the reader then gets ``error``."""
        self._expiry = asyncio.get_running_loop().call_at(when, self.expire, error)

    def expire(self, error: LlmdError) -> None:
        """Cancel every sequence; the reader gets ``error`` after what is queued."""
        for request_id in self._index:
            self._canceller.cancel(request_id)
        self.fail(error)

    def begin(self, started: Started) -> None:
        """Record that a sequence began to run. Only its first start counts, not a resumption."""
        index = self._index.get(started.request_id)
        if index is not None:
            self.cached_tokens.setdefault(index, started.cached_tokens)

    def push(self, item: Item) -> None:
        """Queue a message."""
        self._items.append(item)
        self._changed.set()

    def fail(self, error: LlmdError) -> None:
        """End the mailbox with an error; messages queued before it are still read."""
        self._error = self._error or error
        self._changed.set()

    def _taken(self, item: Item) -> None:
        """Called when a message was handed out."""
