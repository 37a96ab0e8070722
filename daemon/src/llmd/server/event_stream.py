"""Server-sent events to one client, with a ping in every silence."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from llmd.api.errors import LlmdError
from llmd.server.error_shapes import error_reply
from llmd.server.json_response import encode_json
from llmd.server.problems import INTERNAL, problem_of
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)

PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class EventStream:
    """An async context manager around one streamed reply.

    The status line goes out with the first event or the first ping, so that a request that fails before gets an
    error status of its own. One write per event; a client that reads slowly holds `send`.
    """

    def __init__(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        ping_s: float,
        *,
        named: bool = False,
        ping: bytes = PING,
    ) -> None:
        """``named``: each event's ``type`` stands in a line of its own too. ``ping`` is what fills a silence."""
        self.response = web.StreamResponse(headers={**HEADERS, **headers})
        self._request = request
        self._ping_s = ping_s
        self._named = named
        self._ping = ping
        self._preparing = asyncio.Lock()
        self._pinger: OwnedTask | None = None
        self._written = 0

    async def __aenter__(self) -> Self:
        self._pinger = OwnedTask(self._ping_in_silence(), f"ping {self._request.path}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """A failure after the status line becomes the last event; the stream then ends without ``[DONE]``."""
        await self._end_pings()
        if (
            not self.response.prepared
            or not isinstance(error, Exception)
            or isinstance(error, ConnectionError)
        ):
            return False
        if isinstance(error, LlmdError):
            problem = problem_of(error)
        else:
            logger.error("stream_failed", exc_info=error, extra={"path": self._request.path})
            problem = INTERNAL
        await self.send(error_reply(self._request, problem).body)
        await self.response.write_eof()
        return True

    async def send(self, value: Any) -> None:
        """Send one event."""
        name = f"event: {value['type']}\n".encode() if self._named else b""
        await self._write(name + b"data: " + encode_json(value) + b"\n\n")

    async def done(self) -> None:
        """Send the last event of OpenAI's older streams and end the reply."""
        await self._end_pings()
        await self._write(DONE)
        await self.response.write_eof()

    async def end(self) -> None:
        """End a reply whose last event was sent."""
        await self._end_pings()
        await self.response.write_eof()

    async def _write(self, chunk: bytes) -> None:
        self._written += 1
        async with self._preparing:
            if not self.response.prepared:
                await self.response.prepare(self._request)
        await self.response.write(chunk)

    async def _end_pings(self) -> None:
        """Before the reply ends: a ping after its last chunk would be taken for the next reply."""
        assert self._pinger is not None
        await self._pinger.close()

    async def _ping_in_silence(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                before = self._written
                await asyncio.sleep(self._ping_s)
                if self._written == before:
                    await self._write(self._ping)
