"""How much of the context window a conversation takes, and what to drop if it does not fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from llmd_tui.screens.chat.request_body import sent
from llmd_tui.screens.chat.store.records import Message


class Room(msgspec.Struct, frozen=True):
    """Tokens of a prompt and of the context window."""

    used: int
    window: int | None
    """None: the model does not say."""
    max_tokens: int | None = None

    @property
    def left(self) -> int | None:
        """Tokens that an answer may have; negative: the prompt must lose one token more than this."""
        if self.window is None:
            return self.max_tokens
        free = self.window - self.used
        return free if self.max_tokens is None else min(free, self.max_tokens)

    @property
    def is_over(self) -> bool:
        """Whether there is no room for an answer."""
        return self.window is not None and self.used >= self.window

    @property
    def share(self) -> float:
        """Share of the window that is used, at most one."""
        return min(self.used / self.window, 1.0) if self.window else 0.0


def room_words(room: Room) -> str:
    """Say how full the context is."""
    if room.window is None:
        return f"{room.used} tokens"
    words = f"{room.used}/{room.window} tokens"
    if room.is_over:
        return f"{words}: too long by {room.used - room.window + 1}, /drop removes the oldest turns"
    return f"{words}, an answer may have {room.left}"


def prompt_limit(window: int, max_tokens: int | None) -> int:
    """Return the tokens that a shortened conversation may have: the answer gets a quarter of the window."""
    wanted = window // 4 if max_tokens is None else max_tokens
    return window - max(1, min(wanted, window // 2))


def beginnings(path: Sequence[Message], first: int | None) -> list[int]:
    """Return where a shortened request may begin; the first drops least, none: nothing can be dropped."""
    messages = sent(path, first)
    questions = [one.message_id for one in messages if one.role == "user"]
    return [*questions[1:], messages[-1].message_id + 1] if messages else []


async def fewest_dropped(
    candidates: Sequence[int], count: Callable[[int], Awaitable[int]], limit: int
) -> int:
    """Return the first beginning with which the chat has at most ``limit`` tokens; else the last one."""
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if await count(candidates[middle]) <= limit:
            high = middle
        else:
            low = middle + 1
    return candidates[low]
