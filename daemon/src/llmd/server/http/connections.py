"""Client connections: their number and time limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from msgspec import Struct

from llmd.api.problem import Problem
from llmd.server.http.error_shapes import error_response, openai_error
from llmd.server.http.json_line import encode_json

logger = logging.getLogger(__name__)

MAX_LINE = 8190
SPARE_DESCRIPTORS = 128
REFUSAL_S = 1.0
# How long to read the rest of a refused body; otherwise its sender would not see the reply.
LINGER_S = 2.0
_BUSY = Problem(503, "unavailable_error", "overloaded", "the daemon has reached its connection limit")
_SLOW = Problem(408, "timeout_error", "headers_too_slow", "the headers of the request did not arrive in time")


class ConnectionLimits(Struct, frozen=True):
    """Limits of connections."""

    most: int
    """Connections at once."""
    headers_s: float
    """Seconds for the headers of a request."""
    write_s: float
    """Seconds in which a client must read some of the data sent to it."""
    idle_s: float
    """Seconds between two requests of one connection."""


class Connections:
    """Creates a protocol for each accepted connection."""

    def __init__(self, server: web.Server, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.server = server
        self.open = 0
        self.accepting: Sequence[asyncio.Server] = ()
        self._most = min(limits.most, max(1, descriptor_limit() - SPARE_DESCRIPTORS))

    def stop_accepting(self) -> None:
        """Leave new connections to whoever else holds the listening sockets; open ones stay."""
        for server in self.accepting:
            server.close()

    def __call__(self) -> asyncio.Protocol:
        if self.open >= self._most:
            logger.warning("connection_refused", extra={"open": self.open})
            return _Refusal()
        return Connection(self)


class Connection(RequestHandler):
    """aiohttp's connection with time limits for headers and slow readers, and errors in JSON."""

    __slots__ = ("_awaiting", "_connections", "_headers_timer", "_write_timer")

    def __init__(self, connections: Connections) -> None:
        super().__init__(
            connections.server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # none, as web.AppRunner passes it on too
            keepalive_timeout=connections.limits.idle_s,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            lingering_time=LINGER_S,
        )
        self._connections = connections
        self._awaiting = True
        self._headers_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        factory = self._request_factory
        assert factory is not None

        def began(*arguments: Any) -> Any:
            self._awaiting = False
            self._headers_timer = _cancelled(self._headers_timer)
            return factory(*arguments)

        self._request_factory = began

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.open += 1
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._manager is not None:
            self._connections.open -= 1
        self._headers_timer = _cancelled(self._headers_timer)
        self._write_timer = _cancelled(self._write_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the time limit when a request line begins."""
        super().data_received(data)
        if data and self._awaiting and self._headers_timer is None:
            self._expect_headers()

    def pause_writing(self) -> None:
        """Start the time limit of a client that reads slower than data is sent."""
        super().pause_writing()
        self._write_timer = self._loop.call_later(self._connections.limits.write_s, self._abort)

    def resume_writing(self) -> None:
        self._write_timer = _cancelled(self._write_timer)
        super().resume_writing()

    async def finish_response(self, *arguments: Any) -> tuple[web.StreamResponse, bool]:
        """Wait for the next request."""
        finished = await super().finish_response(*arguments)
        self._awaiting = True
        return finished

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that is not valid HTTP with a JSON error, and end the connection."""
        if status >= 500:
            logger.error("connection_failed", exc_info=exc)
        else:
            logger.info("request_unreadable", extra={"reason": str(message)[:200]})
        if request.writer.output_size > 0:
            raise ConnectionError("the reply has begun")
        response = error_response(request, _unreadable(status, exc, message))
        response.force_close()
        return response

    def _expect_headers(self) -> None:
        self._headers_timer = self._loop.call_later(self._connections.limits.headers_s, self._too_slow)

    def _too_slow(self) -> None:
        self._headers_timer = None
        if self._awaiting and not self._messages and self.transport is not None:
            self.transport.write(_whole(_SLOW))
            self.force_close()

    def _abort(self) -> None:
        if self.transport is not None:
            logger.info("slow_reader_dropped", extra={"limit_s": self._connections.limits.write_s})
            self.transport.abort()


class _Refusal(asyncio.Protocol):
    """Tells a client that the connection limit is reached."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(_whole(_BUSY, "Retry-After: 1\r\n"))
        # The request is still arriving: closing at once would reset the connection before the client reads
        # the reply.
        asyncio.get_running_loop().call_later(REFUSAL_S, transport.abort)
        if transport.can_write_eof():
            transport.write_eof()


def descriptor_limit() -> int:
    """Return how many file descriptors this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def raise_descriptor_limit(wanted: int) -> None:
    """Raise the limit of file descriptors to what the connections need, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(
            OSError, ValueError
        ):  # the limit stays as it was, and fewer connections are accepted
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _unreadable(status: int, error: BaseException | None, message: str | None) -> Problem:
    if status >= 500:
        return Problem(
            500, "server_error", "internal_error", "the daemon failed; see the traceback in its log"
        )
    if isinstance(error, LineTooLong):
        text = f"the request line or a header is longer than {MAX_LINE} bytes"
        return Problem(431, "invalid_request_error", "headers_too_large", text)
    first = str(message or error or "it is not HTTP").partition("\n")[0].strip().rstrip(":")
    return Problem(400, "invalid_request_error", "invalid_http", f"the request cannot be read: {first[:200]}")


def _whole(problem: Problem, headers: str = "") -> bytes:
    """Return a complete reply to a connection whose request was not read."""
    body = encode_json(openai_error(problem, "").body)
    head = (
        f"HTTP/1.1 {problem.status} {problem.code}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{headers}Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer if there is one; return None."""
    if timer is not None:
        timer.cancel()
    return None
