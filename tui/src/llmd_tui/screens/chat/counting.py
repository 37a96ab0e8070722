"""Counts the tokens of a chat with its draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmd_tui.daemon.access import Daemon
from llmd_tui.screens.chat.open_chat import OpenChat
from llmd_tui.screens.chat.request_body import COUNT_ROUTE, chat_body
from llmd_tui.screens.chat.room import Room, beginnings, fewest_dropped, prompt_limit
from llmd_tui.screens.chat.store.records import Content


async def count(daemon: Daemon, body: Mapping[str, Any]) -> int:
    """Return the tokens of a request.

    Raises:
        LlmdError: the daemon cannot count them.
    """
    if not body["messages"]:
        return 0
    return int((await daemon.post(COUNT_ROUTE, body)).get("input_tokens", 0))


async def room(daemon: Daemon, chat: OpenChat, draft: Content | None, window: int | None) -> Room:
    """Return how much of the context a chat takes with its draft."""
    body = chat_body(chat.settings, chat.path, first=chat.session.first_sent, draft=draft)
    return Room(await count(daemon, body), window, chat.settings.max_tokens)


async def shortened(daemon: Daemon, chat: OpenChat, draft: Content | None, window: int) -> int | None:
    """Return with which message the chat may begin so that it fits; None if there is nothing to drop."""
    path: Sequence[Any] = chat.path
    candidates = beginnings(path, chat.session.first_sent)
    if draft is None:
        candidates = candidates[:-1]
    if not candidates:
        return None

    async def tokens(first: int) -> int:
        return await count(daemon, chat_body(chat.settings, path, first=first, draft=draft))

    return await fewest_dropped(candidates, tokens, prompt_limit(window, chat.settings.max_tokens))
