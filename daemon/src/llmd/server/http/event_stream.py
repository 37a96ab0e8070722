"""Server-sent events, with a ping whenever nothing is sent for a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from llmd.api.problem import Problem
from llmd.server.http.json_line import encode_json
from llmd.server.http.streamed_reply import StreamedReply

PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class EventStream(StreamedReply):
    """One event per value. A stream that fails ends with an error and without ``[DONE]``."""

    def __init__(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        ping_s: float,
        *,
        named: bool = False,
        ping: bytes = PING,
        failed: Callable[[Problem], Any] | None = None,
    ) -> None:
        """``named``: send each event's ``type`` on its own line, too. ``ping``: sent between values."""
        super().__init__(request, {**HEADERS, **headers}, ping_s, ping, failed)
        self._named = named

    async def done(self) -> None:
        """Send the last event of OpenAI's older streams and end the reply."""
        await self._end_pings()
        await self._write(DONE)
        await self.response.write_eof()

    def _framed(self, value: Any) -> bytes:
        name = f"event: {value['type']}\n".encode() if self._named else b""
        return name + b"data: " + encode_json(value) + b"\n\n"
