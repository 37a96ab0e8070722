"""``POST /v1/messages`` and ``/v1/messages/count_tokens``, and Claude Code's probe ``GET /api/hello``."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct, structs

from llmd.api.messages import Grammar
from llmd.chat.model_text import ChatPrompt
from llmd.requests.fields import RequestFields
from llmd.server.dialects.anthropic.conversation import read_conversation
from llmd.server.dialects.anthropic.fields import (
    read_anthropic_sampling,
    read_end,
    read_output_config,
    read_thinking,
)
from llmd.server.dialects.anthropic.message_shape import MessageShape
from llmd.server.dialects.anthropic.tools import read_tools
from llmd.server.generation.counting import count_tokens
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.event_stream import EventStream
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
"""Sent when there are no events: clients of this API do not support SSE comments."""


class MessagesRequest(Struct, frozen=True):
    """The fields that both routes parse."""

    prompt: ChatPrompt
    grammar: Grammar | None
    """What the answer must match; None: it is free."""
    thinking_is_shown: bool
    """Whether the answer shows the reasoning."""
    ignored: tuple[str, ...]
    """Fields that were ignored."""


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Answer a conversation."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    stream, keep_alive_s = fields.boolean("stream"), read_keep_alive(fields)
    question = read_request(fields)
    template = GenerationRequest(
        prompts=(),
        sampling=read_anthropic_sampling(fields),
        end=read_end(fields),
        at_text_start=not question.prompt.continue_final_message,
        conversation=question.prompt,
        grammar=question.grammar,
        grammar_param="output_config.format",
    )
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        tokens = await service.in_thread(ready.text.encode_chat, question.prompt)
        return template.with_prompts((tokens,))

    prepared = PreparedRequest(model, fields.ignored + question.ignored, prepare, keep_alive_s)
    shape = MessageShape(asked or model.name, template.end, thinking_is_shown=question.thinking_is_shown)
    if stream:
        return await _stream(request, service, prepared, shape)
    ready, generation = await prepared.start()
    async with generation:
        async for _, piece in generation.pieces(ready.supervisor):
            shape.add(piece)
    return json_response(shape.body(generation.usage), headers=prepared.headers())


async def _stream(
    request: web.Request, service: Service, prepared: PreparedRequest, shape: MessageShape
) -> web.StreamResponse:
    ping_s = service.config.limits.ping_s
    async with EventStream(request, prepared.headers(), ping_s, named=True, ping=PING) as events:
        ready, generation = await prepared.start()
        async with generation:
            begun = False
            async for _, piece in generation.pieces(ready.supervisor):
                if not begun:
                    begun = True
                    await events.send(shape.start(generation.usage))
                for event in shape.events(piece):
                    await events.send(event)
        for event in shape.end(generation.usage):
            await events.send(event)
        await events.end()
    return events.response


async def count(request: web.Request, service: Service) -> web.Response:
    """Count the prompt tokens of a conversation, without the engine."""
    fields = RequestFields(await read_object(request))
    asked, question = fields.text("model"), read_request(fields)
    return json_response({"input_tokens": await count_tokens(request, service, asked, question.prompt)})


async def hello(_request: web.Request, service: Service) -> web.Response:
    """Answer Claude Code's connectivity check: 200 as long as the process answers at all."""
    return json_response({"message": f"llmd {service.version}"})


def read_request(fields: RequestFields) -> MessagesRequest:
    """Parse the prompt of a request.

    Raises:
        BadRequestError: a part of it cannot be parsed.
    """
    conversation, tools, output = read_conversation(fields), read_tools(fields), read_output_config(fields)
    thinking = read_thinking(fields, output.effort)
    prompt = structs.replace(
        conversation.prompt(),
        variables=thinking.variables,
        tools=tools.tools,
        tool_choice=tools.choice,
        reasoning_budget=thinking.budget,
    )
    ignored = conversation.skipped + tools.ignored + thinking.ignored + output.ignored
    return MessagesRequest(prompt, output.grammar, thinking.is_shown, ignored)
