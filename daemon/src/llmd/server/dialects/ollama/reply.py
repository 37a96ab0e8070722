"""Runs a request and writes its lines, streamed or joined into one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp import web
from msgspec import Struct

from llmd.server.dialects.ollama.lines import AnswerLines, Content, joined
from llmd.server.generation.generation import Generation
from llmd.server.generation.prepared_request import PreparedRequest, truncation_header
from llmd.server.http.json_response import json_response
from llmd.server.http.line_stream import LineStream
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Reply(Struct, frozen=True):
    """A parsed request."""

    prepared: PreparedRequest
    name: str
    """The model's name as the client wrote it."""
    content: Content
    stream: bool
    with_context: bool = False
    """Whether the last line has the tokens of prompt and answer, for the client to continue from."""


async def write_reply(request: web.Request, service: Service, answering: Reply) -> web.StreamResponse:
    """Answer a parsed request."""
    headers = answering.prepared.headers()
    if answering.stream:
        async with LineStream(request, headers, service.config.limits.ping_s) as stream:
            await _run(answering, stream.send, stream.response.headers)
            await stream.end()
        return stream.response
    lines: list[dict[str, Any]] = []

    async def keep(line: dict[str, Any]) -> None:
        lines.append(line)

    await _run(answering, keep, headers)
    return json_response(joined(lines), headers=headers)


async def _run(answering: Reply, send: Send, headers: MutableMapping[str, str]) -> None:
    """Send every line, and headers that are known after encoding the prompt, if they can still be sent."""
    begun = time.monotonic_ns()
    ready, generation = await answering.prepared.start()
    load_ns = time.monotonic_ns() - begun
    request = generation.request
    headers.update(truncation_header(request.truncated_tokens))
    lines = _lines(answering, ready, generation)
    reason = "stop"
    async with generation:
        async for _, piece in generation.pieces(ready.supervisor):
            for line in lines.lines(piece):
                await send(line)
            reason = piece.finish or reason
    figures = _figures(generation, begun, load_ns)
    if answering.with_context:
        figures["context"] = [*request.prompts[0], *lines.tokens]
    await send(lines.last(reason, figures))


def _lines(answering: Reply, ready: ReadyModel, generation: Generation) -> AnswerLines:
    return AnswerLines(
        answering.name,
        answering.content,
        ready.text.tokenizer,
        logprobs=generation.request.sampling.logprobs is not None,
    )


def _figures(generation: Generation, begun: int, load_ns: int) -> dict[str, Any]:
    """Return counts and durations in nanoseconds; the whole prompt counts, cached or not."""
    truncated = generation.request.truncated_tokens
    return {
        "total_duration": time.monotonic_ns() - begun,
        "load_duration": load_ns,
        "prompt_eval_count": generation.usage.prompt_tokens,
        "prompt_eval_duration": generation.timing.prefill_ns,
        "eval_count": generation.usage.completion_tokens,
        "eval_duration": generation.timing.decode_ns,
        **({"llmd": {"truncated_tokens": truncated}} if truncated else {}),
    }
