"""Base of streamed replies in any format: status line, pings, errors and the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from llmd.api.errors import LlmdError
from llmd.api.problem import Problem
from llmd.server.http.error_shapes import error_reply
from llmd.server.http.problems import INTERNAL, problem_of
from llmd.server.request_record import current_record
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)


class StreamedReply(ABC):
    """An async context manager for one streamed reply.

    The status line is sent with the first value or after ``silence_s``, so that a request that fails
    before then gets an error status. Each value is one write; a slow client blocks `send`.
    """

    def __init__(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        silence_s: float,
        ping: bytes,
        failed: Callable[[Problem], Any] | None = None,
    ) -> None:
        """``ping`` is written after each ``silence_s`` seconds without a value; it may be empty.

        ``failed`` returns the last value of a stream that fails; by default it is the dialect's error.
        """
        self.response = web.StreamResponse(headers=headers)
        self._request = request
        self._silence_s = silence_s
        self._ping = ping
        self._failed = failed or (lambda problem: error_reply(request, problem).body)
        self._preparing = asyncio.Lock()
        self._pinger: OwnedTask | None = None
        self._written = 0

    async def __aenter__(self) -> Self:
        self._pinger = OwnedTask(self._ping_in_silence(), f"ping {self._request.path}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Send a failure after the status line as the last value."""
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
        current_record().error = problem.code or problem.type
        await self.send(self._failed(problem))
        await self.response.write_eof()
        return True

    async def send(self, value: Any) -> None:
        await self._write(self._framed(value))

    async def end(self) -> None:
        """End a reply whose last value was sent."""
        await self._end_pings()
        await self.response.write_eof()

    @abstractmethod
    def _framed(self, value: Any) -> bytes:
        """Encode a value for the wire."""

    async def _write(self, chunk: bytes) -> None:
        self._written += 1
        async with self._preparing:
            if not self.response.prepared:
                await self.response.prepare(self._request)
        if chunk:
            await self.response.write(chunk)

    async def _end_pings(self) -> None:
        """Stop the pings before the reply ends: a later one would be read as part of the next reply.

        The task is dropped: it refers to this reply, and the cycle would keep the request until a full
        garbage collection.
        """
        pinger, self._pinger = self._pinger, None
        if pinger is not None:
            await pinger.close()

    async def _ping_in_silence(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                before = self._written
                await asyncio.sleep(self._silence_s)
                if self._written == before:
                    await self._write(self._ping)
