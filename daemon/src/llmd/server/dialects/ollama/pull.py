"""``POST /api/pull``: pulls a model from the hub."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from llmd.registry.names import parse_hub_name
from llmd.registry.pull import PullStep
from llmd.requests.fields import RequestFields
from llmd.server.dialects.ollama.names import read_name
from llmd.server.dialects.ollama.progress import FIRST_LINE_S
from llmd.server.http.bodies import read_object
from llmd.server.http.json_response import json_response
from llmd.server.http.line_stream import LineStream
from llmd.server.service import Service


async def pull(request: web.Request, service: Service) -> web.StreamResponse:
    """Pull a model. Streams a line for each step, at least two per second, or returns only the last one.

    The hub is set in the daemon's settings; ``insecure`` has no effect.

    Raises:
        RequestError: this is not a valid model name.
        ConflictError: the name belongs to a directory that llmd did not pull.
    """
    fields = RequestFields(await read_object(request))
    stream = fields.boolean("stream", default=True)
    name = parse_hub_name(read_name(fields))
    await service.in_thread(service.models.store.pulled_models.check_free, name.local)
    async with service.pulls.subscribe(name) as steps:
        if not stream:
            async for step in steps:
                last = _line(step)
            return json_response(last)
        async with LineStream(request, {}, FIRST_LINE_S) as lines:
            async for step in steps:
                await lines.send(_line(step))
            await lines.end()
    return lines.response


def _line(step: PullStep) -> dict[str, Any]:
    """Return a step in Ollama's format; it has counts only if a total is known."""
    if not step.total:
        return {"status": step.status}
    return {"status": step.status, "digest": step.digest, "total": step.total, "completed": step.completed}
