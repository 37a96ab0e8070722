"""Runs a request and writes its answer, whole or as a stream; chat and completions differ only in shape."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from aiohttp import web
from msgspec import Struct

from llmd.chat.answers.answer_text import Piece
from llmd.requests.fields import RequestFields
from llmd.server.generation.generation import Generation, GenerationRequest, Usage
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.event_stream import EventStream
from llmd.server.http.json_response import json_response
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


class ReplyHead(Struct, frozen=True):
    """What all chunks of an answer share."""

    id: str
    model: str
    created: int
    system_fingerprint: str

    @classmethod
    def new(cls, prefix: str, model: str, version: str) -> ReplyHead:
        return cls(f"{prefix}-{uuid.uuid4().hex}", model, int(time.time()), f"llmd-{version}")

    def envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """A whole answer or a chunk of one."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
            "choices": choices,
        }


class StreamOptions(Struct, frozen=True):
    """Whether the answer is streamed, and where its stream says what it used."""

    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False


class Shape(Protocol):
    """One answer in a dialect's form; made when the prompts are known."""

    def chunks(self, index: int, piece: Piece) -> Iterable[dict[str, Any]]:
        """The chunks that a piece of choice ``index`` becomes."""
        ...

    def add(self, index: int, piece: Piece) -> None:
        """Keep a piece for `body`."""
        ...

    def body(self) -> dict[str, Any]:
        """The whole answer, but for its usage."""
        ...

    def without_choices(self) -> dict[str, Any]:
        """The chunk that carries the usage alone."""
        ...


class Reply(Struct, frozen=True):
    """An prepared and how its answer is written: ``shape`` gives the form."""

    prepared: PreparedRequest
    options: StreamOptions
    shape: Callable[[ReadyModel, GenerationRequest], Shape]

    async def start(self) -> tuple[ReadyModel, Generation, Shape]:
        """The generation, and the form of its answer."""
        ready, generation = await self.prepared.start()
        return ready, generation, self.shape(ready, generation.request)


def read_stream_options(fields: RequestFields) -> tuple[StreamOptions, tuple[str, ...]]:
    """Stream options, and which of them were ignored."""
    nested = fields.nested("stream_options")
    options = StreamOptions(
        stream=fields.boolean("stream"),
        include_usage=nested.boolean("include_usage"),
        continuous_usage=nested.boolean("continuous_usage_stats"),
    )
    return options, nested.ignored


async def write_reply(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    """Answer a request that was read."""
    if answering.options.stream:
        return await _stream(request, service, answering)
    ready, generation, shape = await answering.start()
    async with generation:
        async for index, piece in generation.pieces(ready.supervisor):
            shape.add(index, piece)
    body = shape.body() | {"usage": usage_body(generation.usage)}
    return json_response(body, headers=answering.prepared.headers())


async def _stream(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    async with EventStream(request, answering.prepared.headers(), service.config.ping_s) as events:
        ready, generation, shape = await answering.start()
        async with generation:
            async for index, piece in generation.pieces(ready.supervisor):
                for chunk in shape.chunks(index, piece):
                    await events.send(chunk | _chunk_usage(answering.options, generation.usage))
        if answering.options.include_usage:
            await events.send(shape.without_choices() | {"usage": usage_body(generation.usage)})
        await events.done()
    return events.response


def _chunk_usage(options: StreamOptions, usage: Usage) -> dict[str, Any]:
    if options.continuous_usage:
        return {"usage": usage_body(usage)}
    return {"usage": None} if options.include_usage else {}


def usage_body(usage: Usage) -> dict[str, Any]:
    """Tokens as OpenAI counts them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
