from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from llmd.api.errors import EngineCrashedError, RequestError
from llmd.api.problem import ErrorReply, ErrorShape, Problem
from llmd.server.error_shapes import OPENAI, SHAPE, error_response
from llmd.server.event_stream import DONE, PING, EventStream
from llmd.server.problems import problem_of

OFTEN_S = 0.001
NEVER_S = 1000.0
Write = Callable[[EventStream], Awaitable[None]]
Ask = Callable[..., Awaitable[ClientResponse]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """Serves one stream that a function writes, and asks for it; options are those of the stream."""
    clients: list[TestClient[web.Request, web.Application]] = []

    async def asked(
        write: Write, ping_s: float, shape: ErrorShape = OPENAI, **options: Any
    ) -> ClientResponse:
        async def handler(request: web.Request) -> web.StreamResponse:
            request[SHAPE] = shape
            try:
                async with EventStream(request, {"x-test": "yes"}, ping_s, **options) as events:
                    await write(events)
            except RequestError as error:
                return error_response(request, problem_of(error))
            return events.response

        app = web.Application()
        app.router.add_get("/", handler)
        client = TestClient(TestServer(app))
        clients.append(client)
        await client.start_server()
        return await client.get("/")

    yield asked
    for client in clients:
        await client.close()


async def test_events_are_one_line_each_and_the_last_is_done(ask: Ask) -> None:
    async def write(events: EventStream) -> None:
        await events.send({"text": "a\nb"})
        await events.send({"text": "é"})
        await events.done()

    reply = await ask(write, NEVER_S)
    assert reply.headers["x-test"] == "yes"
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    expected = 'data: {"text":"a\\nb"}\n\ndata: {"text":"é"}\n\n'.encode() + DONE
    assert await reply.read() == expected


async def test_events_may_be_named_by_their_type_and_end_without_done(ask: Ask) -> None:
    async def write(events: EventStream) -> None:
        await events.send({"type": "hello", "text": "a"})
        await events.end()

    content = await (await ask(write, NEVER_S, named=True)).read()
    assert content == b'event: hello\ndata: {"type":"hello","text":"a"}\n\n'


async def test_pings_may_be_events(ask: Ask) -> None:
    silent = asyncio.Event()

    async def write(events: EventStream) -> None:
        await silent.wait()
        await events.end()

    ping = b"event: ping\n\n"
    reply = await ask(write, OFTEN_S, ping=ping)
    assert await reply.content.readexactly(len(ping)) == ping
    silent.set()


async def test_silence_is_filled_with_comments(ask: Ask) -> None:
    silent = asyncio.Event()

    async def write(events: EventStream) -> None:
        await silent.wait()
        await events.send({})
        await events.done()

    reply = await ask(write, OFTEN_S)
    assert await reply.content.readline() + await reply.content.readline() == PING
    silent.set()
    assert (await reply.read()).endswith(b"data: {}\n\n" + DONE)


async def test_nothing_follows_the_end(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def write(events: EventStream) -> None:
        await events.done()
        await asyncio.sleep(20 * OFTEN_S)
        ended.set()

    assert (await (await ask(write, OFTEN_S)).read()).endswith(DONE)
    await ended.wait()
    assert "task_failed" not in caplog.text


async def test_failure_before_the_first_event_has_a_status_of_its_own(ask: Ask) -> None:
    async def write(_events: EventStream) -> None:
        raise RequestError("no", param="p")

    reply = await ask(write, NEVER_S)
    assert reply.status == 400
    assert reply.headers["Content-Type"].startswith("application/json")


async def test_failure_after_the_first_event_is_the_last_one(ask: Ask) -> None:
    async def write(events: EventStream) -> None:
        await events.send({})
        raise EngineCrashedError("gone")

    content = await (await ask(write, NEVER_S)).read()
    assert content.startswith(b'data: {}\n\ndata: {"error":')
    assert b'"code":"engine_crashed"' in content
    assert DONE not in content


async def test_failure_in_a_stream_has_the_form_of_the_dialect(ask: Ask) -> None:
    def write_error(problem: Problem, _request_id: str) -> ErrorReply:
        return ErrorReply(problem.status, {"type": "error", "why": problem.message})

    async def write(events: EventStream) -> None:
        await events.send({"type": "hello"})
        raise EngineCrashedError("gone")

    reply = await ask(write, NEVER_S, named=True, shape=ErrorShape(write_error, paths=()))
    assert (await reply.read()).endswith(b'event: error\ndata: {"type":"error","why":"gone"}\n\n')


async def test_failure_that_nobody_foresaw_is_told_without_its_details(
    ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(events: EventStream) -> None:
        await events.send({})
        raise ZeroDivisionError("secret")

    content = await (await ask(write, NEVER_S)).read()
    assert b"internal_error" in content
    assert b"secret" not in content
    assert "secret" in caplog.text
