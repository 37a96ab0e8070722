"""Tokens of one generation's sequences on their way from the engine to one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from llmd.api.errors import LlmdError
from llmd.api.messages import Started, TokenOutput


class Control(Protocol):
    """What a stream may ask of its supervisor."""

    def cancel(self, request_id: int) -> None: ...
    def pause(self, request_id: int) -> None: ...
    def resume(self, request_id: int) -> None: ...


class TokenStream:
    """A bounded mailbox. Where its reader is slow, its requests leave the engine until it has caught up.

    ``request_ids`` are those of the sequences, by their index. ``cached_tokens`` is how many tokens of a sequence were
    in the prefix cache when it began to run. ``buffer_tokens`` bounds what the mailbox holds: a token counts once, and
    once for each alternative that comes with it. Used on the event loop alone.
    """

    def __init__(self, request_ids: tuple[int, ...], control: Control, buffer_tokens: int) -> None:
        self._index = {request_id: index for index, request_id in enumerate(request_ids)}
        self._control = control
        self._buffer_tokens = buffer_tokens
        self._tokens: deque[TokenOutput] = deque()
        self._held = 0
        self.cached_tokens: dict[int, int] = {}
        self._error: LlmdError | None = None
        self._paused = False
        self._changed = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None

    async def next(self) -> tuple[int, TokenOutput]:
        """The next token and the index of its sequence.

        Raises:
            LlmdError: what ended one of the requests; the others are cancelled.
        """
        while not self._tokens:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        token = self._tokens.popleft()
        self._held -= _size(token)
        self._resume_if_caught_up()
        return self._index[token.request_id], token

    def cancel(self, index: int) -> None:
        """Ask for no more tokens of one sequence; those on their way are dropped."""
        request_id = next(key for key, value in self._index.items() if value == index)
        del self._index[request_id]
        self._tokens = deque(token for token in self._tokens if token.request_id != request_id)
        self._held = sum(map(_size, self._tokens))
        self._control.cancel(request_id)
        self._resume_if_caught_up()

    def close(self) -> None:
        """Ask for no more tokens at all."""
        for request_id in tuple(self._index):
            self._control.cancel(request_id)
        self._index.clear()
        if self._expiry is not None:
            self._expiry.cancel()

    def expire_at(self, when: float, error: LlmdError) -> None:
        """End every sequence at a time of the event loop's clock; its reader gets ``error`` after the last token."""
        self._expiry = asyncio.get_running_loop().call_at(when, self._expire, error)

    def begin(self, started: Started) -> None:
        """Take from the supervisor that a sequence began to run; what it finds when it runs on does not count."""
        index = self._index.get(started.request_id)
        if index is not None:
            self.cached_tokens.setdefault(index, started.cached_tokens)

    def push(self, token: TokenOutput) -> None:
        """Take a token from the supervisor."""
        self._tokens.append(token)
        self._held += _size(token)
        self._changed.set()
        if not self._paused and self._held >= self._buffer_tokens:
            self._paused = True
            for request_id in self._index:
                self._control.pause(request_id)

    def fail(self, error: LlmdError) -> None:
        """Take the end of a request from the supervisor; tokens before it are still read."""
        self._error = self._error or error
        self._changed.set()

    def _expire(self, error: LlmdError) -> None:
        for request_id in self._index:
            self._control.cancel(request_id)
        self.fail(error)

    def _resume_if_caught_up(self) -> None:
        if self._paused and self._held <= self._buffer_tokens // 2:
            self._paused = False
            for request_id in self._index:
                self._control.resume(request_id)


def _size(token: TokenOutput) -> int:
    """What a token counts: its alternatives take more memory than itself."""
    return 1 if token.logprobs is None else 1 + len(token.logprobs.top_ids)
