"""Newline-delimited JSON (NDJSON), as Ollama streams it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from llmd.server.http.json_line import encode_json
from llmd.server.http.streamed_reply import StreamedReply

HEADERS = {"Content-Type": "application/x-ndjson", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class LineStream(StreamedReply):
    """One line per value. There are no pings, since clients parse every line; the status is sent early."""

    def __init__(self, request: web.Request, headers: Mapping[str, str], silence_s: float) -> None:
        """``silence_s``: how long the status line waits for the first value."""
        super().__init__(request, {**HEADERS, **headers}, silence_s, b"")

    def _framed(self, value: Any) -> bytes:
        return encode_json(value) + b"\n"
