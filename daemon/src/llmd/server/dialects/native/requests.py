"""``GET /llmd/requests``: the requests in flight that need a model."""

from __future__ import annotations

from aiohttp import web

from llmd.server.dialects.native.reply import reply
from llmd.server.service import Service


async def requests(_request: web.Request, service: Service) -> web.Response:
    """Return the requests that run or wait, oldest first, with their present progress."""
    await service.states.whole()  # asks the engines how far they are
    records = sorted(service.metrics.requests, key=lambda record: record.started)
    return reply({"requests": [record.as_event() for record in records]})
