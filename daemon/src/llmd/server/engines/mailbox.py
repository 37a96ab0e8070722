"""What an engine sends for one request's sequences, on its way to one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, Protocol, TypeVar

from llmd.api.errors import LlmdError
from llmd.api.messages import Started


class SequenceMessage(Protocol):
    """A message for one sequence."""

    @property
    def request_id(self) -> int: ...


Item = TypeVar("Item", bound=SequenceMessage)


class Canceller(Protocol):
    """What a mailbox may ask of its supervisor."""

    def cancel(self, request_id: int) -> None: ...


class Mailbox(Generic[Item]):
    """Takes messages from a supervisor and hands them out with the index of their sequence. Used on the event loop alone.

    ``request_ids`` are those of the sequences, by their index. ``cached_tokens`` is how many tokens of a sequence were in
    the prefix cache when it began to run.
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
        """The next message and the index of its sequence.

        Raises:
            LlmdError: what ended one of the requests; the others are cancelled.
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
        """GetReport for no more at all."""
        for request_id in tuple(self._index):
            self._canceller.cancel(request_id)
        self._index.clear()
        if self._expiry is not None:
            self._expiry.cancel()

    def expire_at(self, when: float, error: LlmdError) -> None:
        """End every sequence at a time of the event loop's clock; its reader gets ``error`` after the last message."""
        self._expiry = asyncio.get_running_loop().call_at(when, self._expire, error)

    def begin(self, started: Started) -> None:
        """Take from the supervisor that a sequence began to run; what it finds when it runs on does not count."""
        index = self._index.get(started.request_id)
        if index is not None:
            self.cached_tokens.setdefault(index, started.cached_tokens)

    def push(self, item: Item) -> None:
        """Take a message from the supervisor."""
        self._items.append(item)
        self._changed.set()

    def fail(self, error: LlmdError) -> None:
        """Take the end of a request from the supervisor; messages before it are still read."""
        self._error = self._error or error
        self._changed.set()

    def _taken(self, item: Item) -> None:
        """A message was handed out."""

    def _expire(self, error: LlmdError) -> None:
        for request_id in self._index:
            self._canceller.cancel(request_id)
        self.fail(error)
