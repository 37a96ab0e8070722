"""JSON replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from llmd.server.http.json_line import encode_json


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a complete JSON reply."""
    body = encode_json(value)
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
