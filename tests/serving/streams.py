"""One streamed reply, written by a test and read by a real client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from llmd.api.errors import RequestError
from llmd.api.problem import ErrorShape
from llmd.server.http.error_shapes import OPENAI, SHAPE, error_response
from llmd.server.http.problems import problem_of
from llmd.server.http.streamed_reply import StreamedReply

OFTEN_S = 0.001
NEVER_S = 1000.0
Stream = TypeVar("Stream", bound=StreamedReply)


@contextlib.asynccontextmanager
async def asked(
    make: Callable[[web.Request], Stream],
    write: Callable[[Stream], Awaitable[None]],
    shape: ErrorShape = OPENAI,
) -> AsyncIterator[ClientResponse]:
    """The reply to a request that ``write`` answers with the stream that ``make`` makes."""

    async def handler(request: web.Request) -> web.StreamResponse:
        request[SHAPE] = shape
        try:
            async with make(request) as stream:
                await write(stream)
        except RequestError as error:
            return error_response(request, problem_of(error))
        return stream.response

    app = web.Application()
    app.router.add_get("/", handler)
    async with TestClient(TestServer(app)) as client, client.get("/") as reply:
        yield reply
