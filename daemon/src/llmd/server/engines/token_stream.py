"""The tokens of one generation's sequences, queued for one reader."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from llmd.api.results import TokenOutput
from llmd.server.engines.mailbox import Canceller, Mailbox


class StreamControl(Canceller, Protocol):
    """The part of a supervisor that a stream uses."""

    def pause(self, request_id: int) -> None: ...
    def resume(self, request_id: int) -> None: ...


class TokenStream(Mailbox[TokenOutput]):
    """A bounded mailbox. If its reader is slow, its requests are paused until the reader has caught up.

    ``buffer_tokens`` bounds its content: each token counts once, and once more for each alternative.
    """

    def __init__(self, request_ids: tuple[int, ...], control: StreamControl, buffer_tokens: int) -> None:
        super().__init__(request_ids, control)
        self._control = control
        self._buffer_tokens = buffer_tokens
        self._held = 0
        self._paused = False

    def cancel(self, index: int) -> None:
        """Cancel one sequence; its queued tokens are dropped."""
        request_id = next(key for key, value in self._index.items() if value == index)
        del self._index[request_id]
        self._items = deque(token for token in self._items if token.request_id != request_id)
        self._held = sum(map(_size, self._items))
        self._control.cancel(request_id)
        self._resume_if_caught_up()

    def push(self, item: TokenOutput) -> None:
        super().push(item)
        self._held += _size(item)
        if not self._paused and self._held >= self._buffer_tokens:
            self._paused = True
            for request_id in self._index:
                self._control.pause(request_id)

    def _taken(self, item: TokenOutput) -> None:
        self._held -= _size(item)
        self._resume_if_caught_up()

    def _resume_if_caught_up(self) -> None:
        if self._paused and self._held <= self._buffer_tokens // 2:
            self._paused = False
            for request_id in self._index:
                self._control.resume(request_id)


def _size(token: TokenOutput) -> int:
    """Return what a token counts: its alternatives take more memory than the token."""
    return 1 if token.logprobs is None else 1 + len(token.logprobs.top_ids)
