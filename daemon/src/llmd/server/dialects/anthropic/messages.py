"""``POST /v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct

from llmd.chat.model_text import ChatPrompt
from llmd.server.bodies import read_object
from llmd.server.dialects.anthropic.conversation import read_conversation
from llmd.server.dialects.anthropic.fields import read_end, read_sampling, read_thinking, refuse_tools
from llmd.server.dialects.anthropic.message_shape import MessageShape
from llmd.server.event_stream import EventStream
from llmd.server.exchange import Exchange
from llmd.server.generation import GenerationRequest
from llmd.server.guards import peer_of
from llmd.server.json_response import json_response
from llmd.server.request_fields import RequestFields
from llmd.server.served_model import ReadyModel
from llmd.server.service import Service

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
"""Fills a silence: clients of this API know no comments."""


class Question(Struct, frozen=True):
    """What both routes read: the prompt, whether its reasoning is shown, and what was ignored of it."""

    prompt: ChatPrompt
    thinking_is_shown: bool
    ignored: tuple[str, ...]


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Continue a conversation."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    stream = fields.boolean("stream")
    question = read_question(fields)
    template = GenerationRequest(
        prompts=(),
        sampling=read_sampling(fields),
        end=read_end(fields),
        at_text_start=not question.prompt.continue_final_message,
    )
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        tokens = await service.in_thread(ready.text.encode_chat, question.prompt)
        return template.with_prompts((tokens,))

    exchange = Exchange(model, fields.ignored + question.ignored, prepare)
    shown = question.thinking_is_shown
    shape = MessageShape(asked or model.name, template.end.max_tokens, thinking_is_shown=shown)
    if stream:
        return await _stream(request, service, exchange, shape)
    ready, generation = await exchange.start()
    async with generation:
        async for _, piece in generation.pieces(ready.supervisor):
            shape.add(piece)
    return json_response(shape.body(generation.usage), headers=exchange.headers())


async def _stream(
    request: web.Request, service: Service, exchange: Exchange, shape: MessageShape
) -> web.StreamResponse:
    ping_s = service.config.ping_s
    async with EventStream(request, exchange.headers(), ping_s, named=True, ping=PING) as events:
        ready, generation = await exchange.start()
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


async def count_tokens(request: web.Request, service: Service) -> web.Response:
    """How many tokens a conversation is as a prompt. The engine is not asked."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    question = read_question(fields)
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    text = await model.text()
    tokens = await service.in_thread(text.encode_chat, question.prompt)
    return json_response({"input_tokens": len(tokens)})


def read_question(fields: RequestFields) -> Question:
    """The prompt of a request.

    Raises:
        BadRequestError: a part of it cannot be read.
    """
    conversation = read_conversation(fields)
    refuse_tools(fields)
    thinking = read_thinking(fields)
    prompt = conversation.prompt(**thinking.variables)
    return Question(prompt, thinking.is_shown, conversation.skipped + thinking.ignored)
