"""JSON as clients of the three APIs expect it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    """One line of UTF-8. The line separators that end a line in JavaScript are escaped; NaN is null."""
    return _encoder.encode(value).replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A whole JSON reply."""
    body = encode_json(value)
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
