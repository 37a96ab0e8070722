"""Runs a request and writes its answer, whole or streamed. Chat and completions differ only in `Shape`."""

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
    """The fields shared by all chunks of an answer."""

    id: str
    model: str
    created: int
    system_fingerprint: str

    @classmethod
    def new(cls, prefix: str, model: str, version: str) -> ReplyHead:
        return cls(f"{prefix}-{uuid.uuid4().hex}", model, int(time.time()), f"llmd-{version}")

    def envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a whole answer or a chunk of one."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
            "choices": choices,
        }


class StreamOptions(Struct, frozen=True):
    """Whether the answer is streamed, and which chunks contain the usage."""

    stream: bool = False
    include_usage: bool = False
    """Send the usage in a last chunk."""
    continuous_usage: bool = False
    """Send the usage in every chunk."""


class Shape(Protocol):
    """Formats one answer; created when the prompts are known."""

    def chunks(self, index: int, piece: Piece) -> Iterable[dict[str, Any]]:
        """Return the chunks of a piece of choice ``index``."""
        ...

    def add(self, index: int, piece: Piece) -> None:
        """Keep a piece for `body`."""
        ...

    def body(self) -> dict[str, Any]:
        """Return the whole answer, without its usage."""
        ...

    def without_choices(self) -> dict[str, Any]:
        """Return the chunk that carries only the usage."""
        ...


class Reply(Struct, frozen=True):
    """A prepared request and the format of its answer."""

    prepared: PreparedRequest
    options: StreamOptions
    shape: Callable[[ReadyModel, GenerationRequest], Shape]

    async def start(self) -> tuple[ReadyModel, Generation, Shape]:
        """Start the generation and create the shape of its answer."""
        ready, generation = await self.prepared.start()
        return ready, generation, self.shape(ready, generation.request)


def read_stream_options(fields: RequestFields) -> tuple[StreamOptions, tuple[str, ...]]:
    """Parse the stream options; return also the names of ignored ones."""
    nested = fields.nested("stream_options")
    options = StreamOptions(
        stream=fields.boolean("stream"),
        include_usage=nested.boolean("include_usage"),
        continuous_usage=nested.boolean("continuous_usage_stats"),
    )
    return options, nested.ignored


async def write_reply(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    """Answer a parsed request."""
    if answering.options.stream:
        return await _stream(request, service, answering)
    ready, generation, shape = await answering.start()
    async with generation:
        async for index, piece in generation.pieces(ready.supervisor):
            shape.add(index, piece)
    body = shape.body() | {"usage": usage_body(generation.usage)}
    return json_response(body, headers=answering.prepared.headers())


async def _stream(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    async with EventStream(request, answering.prepared.headers(), service.config.limits.ping_s) as events:
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
    """Return the usage in OpenAI's format."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
