"""Claude Code's connectivity check."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def hello(_request: web.Request, service: Service) -> web.Response:
    """Return 200 as long as the process answers at all."""
    return json_response({"message": f"llmd {service.version}"})
