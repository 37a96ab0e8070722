"""Runs a request and writes its answers, whole or as events."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from msgspec import Struct

from llmd.chat.answers.answer_text import Piece
from llmd.server.dialects.llamacpp.completion_shape import CompletionShape
from llmd.server.dialects.llamacpp.fields import Settings
from llmd.server.generation.generation import Generation
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.event_stream import EventStream
from llmd.server.http.json_response import json_response
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


class Reply(Struct, frozen=True):
    """A parsed request."""

    prepared: PreparedRequest
    name: str
    """The model's name as the client wrote it."""
    settings: Settings


async def write_reply(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    """Answer a parsed request with one object, or with a list of them for several prompts."""
    headers = answering.prepared.headers()
    if answering.settings.stream:
        return await _stream(request, service, answering)
    ready, generation = await answering.prepared.start()
    shape = _shape(answering, ready, generation)
    async with generation:
        async for index, piece in generation.pieces(ready.supervisor):
            shape.add(index, piece)
    answers = [shape.whole(index) for index in range(len(generation.request.prompts))]
    return json_response(answers[0] if len(answers) == 1 else answers, headers=headers)


async def _stream(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    async with EventStream(request, answering.prepared.headers(), service.config.limits.ping_s) as events:
        ready, generation = await answering.prepared.start()
        shape = _shape(answering, ready, generation)
        async with generation:
            async for index, piece in generation.pieces(ready.supervisor):
                for event in _events(shape, index, piece):
                    await events.send(event)
        await events.end()
    return events.response


def _events(shape: CompletionShape, index: int, piece: Piece) -> list[dict[str, Any]]:
    shape.add(index, piece)
    chunk = [shape.chunk(index, piece)] if piece.text or piece.tokens else []
    return [*chunk, shape.last(index)] if piece.finish else chunk


def _shape(answering: Reply, ready: ReadyModel, generation: Generation) -> CompletionShape:
    return CompletionShape(answering.name, answering.settings, generation, ready.text)
