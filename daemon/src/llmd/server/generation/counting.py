"""Counts the tokens of a conversation without the engine."""

from __future__ import annotations

from aiohttp import web

from llmd.chat.model_text import ChatPrompt
from llmd.server.http.guards import peer_of
from llmd.server.service import Service


async def count_tokens(request: web.Request, service: Service, asked: str | None, prompt: ChatPrompt) -> int:
    """Return the exact length of a prompt for the requested model.

    Raises:
        LlmdError: there is no such model, or its chat template cannot render the conversation.
    """
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    with model.in_use():
        text = await model.text()
        return len(await service.in_thread(text.encode_chat, prompt))
