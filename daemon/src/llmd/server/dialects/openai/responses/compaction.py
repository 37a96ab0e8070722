"""``POST /v1/responses/compact``: the model summarises a conversation.

The result replaces the conversation in later requests: the messages of the user, then one item with the
summary of everything.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

from llmd.api.errors import LlmdError
from llmd.api.parts import Text
from llmd.chat.model_text import ChatPrompt
from llmd.requests.ending import EndChoice
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.openai.responses.input_items import Message, given_items, read_items
from llmd.server.dialects.openai.responses.response import usage_body
from llmd.server.dialects.openai.responses.routes import Responses
from llmd.server.dialects.openai.responses.summary import written_summary
from llmd.server.generation.generation import GenerationRequest, Usage
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

MAX_SUMMARY_TOKENS = 2048
ASKED = (
    "Summarise this conversation for someone who will continue it without seeing it. Keep what was asked, what was "
    "decided, facts, names, numbers, results of tools, and what remains to be done. Write only the summary."
)


class Compaction:
    """The route."""

    def __init__(self, responses: Responses) -> None:
        self._responses = responses

    async def compact(self, request: web.Request, service: Service) -> web.Response:
        """Summarise a conversation, so that later requests can be shorter.

        Raises:
            BadRequestError: the conversation is missing or cannot be parsed.
        """
        fields = RequestFields(await read_object(request))
        named, keep_alive_s = fields.text("model"), read_keep_alive(fields)
        instructions = fields.text("instructions")
        items = self._items(fields)
        given = read_items(items)
        prompt = ChatPrompt([*_system(instructions), *given.messages, {"role": "user", "content": ASKED}])
        model = await service.models.resolve(named, allow_path=peer_of(request).is_unix)

        async def prepare(ready: ReadyModel) -> GenerationRequest:
            tokens = await service.in_thread(ready.text.encode_chat, prompt)
            return GenerationRequest(
                prompts=(tokens,),
                sampling=SamplingChoice(),
                end=EndChoice(max_tokens=MAX_SUMMARY_TOKENS),
                param="input",
                conversation=prompt,
            )

        prepared = PreparedRequest(model, fields.ignored + given.skipped, prepare, keep_alive_s)
        summary, usage = await _written(prepared)
        return json_response(_body(items, summary, usage), headers=prepared.headers())

    def _items(self, fields: RequestFields) -> list[Any]:
        earlier = self._responses.earlier(fields)
        return earlier if earlier and fields.value("input") is None else [*earlier, *given_items(fields)]


def _system(instructions: str | None) -> list[Message]:
    return [{"role": "system", "content": instructions}] if instructions else []


async def _written(prepared: PreparedRequest) -> tuple[str, Usage]:
    """Return the summary, without the reasoning before it."""
    ready, generation = await prepared.start()
    texts: list[str] = []
    async with generation:
        async for _, piece in generation.pieces(ready.supervisor):
            texts += [part.text for part in piece.parts if isinstance(part, Text)]
    summary = "".join(texts).strip()
    if not summary:
        raise LlmdError("the model wrote no summary", hint="try again, or choose a larger model")
    return summary, generation.usage


def _body(items: Sequence[Any], summary: str, usage: Usage) -> dict[str, Any]:
    item = {
        "id": f"cmp_{uuid.uuid4().hex}",
        "type": "compaction",
        "encrypted_content": written_summary(summary),
    }
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*_users(items), item],
        "usage": usage_body(usage),
    }


def _users(items: Sequence[Any]) -> Iterator[Message]:
    """Yield the messages of the user as output items."""
    for item in items:
        if item.get("type", "message") == "message" and item.get("role") == "user":
            content = item["content"]
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            named = {"id": item.get("id") or f"msg_{uuid.uuid4().hex}", "type": "message"}
            yield {**named, "status": "completed", "role": "user", "content": parts}
