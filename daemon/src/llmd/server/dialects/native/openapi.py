"""``GET /openapi.json``: describes every route of the daemon, those of plugins included."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.http.routing import DIALECTS
from llmd.server.openapi.document import document
from llmd.server.service import Service


async def openapi(request: web.Request, service: Service) -> web.Response:
    """Describe every route as an OpenAPI 3.1 document."""
    dialects = request.app[DIALECTS]
    described = await service.in_thread(document, service.version, dialects)
    return json_response(described, headers={"Cache-Control": "no-cache"})
