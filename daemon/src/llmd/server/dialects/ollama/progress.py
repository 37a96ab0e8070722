"""Progress of an operation, as lines or only the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.http.line_stream import LineStream

FIRST_LINE_S = 1.0


async def write_progress(
    request: web.Request, lines: Sequence[dict[str, Any]], *, stream: bool
) -> web.StreamResponse:
    """Send the steps of an operation."""
    if not stream:
        return json_response(lines[-1])
    async with LineStream(request, {}, FIRST_LINE_S) as reply:
        for line in lines:
            await reply.send(line)
        await reply.end()
    return reply.response
