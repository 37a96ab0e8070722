"""What the routes answer."""

from __future__ import annotations

from typing import Any

from aiohttp import web


async def hello(request: web.Request, _service: Any) -> web.Response:
    """Greet the name in the query, or the world."""
    return web.json_response({"hello": request.query.get("name", "world")})
