from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from llmd.api.errors import EngineCrashedError
from llmd.api.problem import ErrorReply, ErrorShape, Problem
from llmd.server.http.event_stream import DONE, PING, EventStream
from tests.serving.streams import NEVER_S, OFTEN_S, asked


def events(ping_s: float, **options: Any) -> Callable[[web.Request], EventStream]:
    return lambda request: EventStream(request, {"x-test": "yes"}, ping_s, **options)


async def test_events_are_one_line_each_and_the_last_is_done() -> None:
    async def write(events: EventStream) -> None:
        await events.send({"text": "a\nb"})
        await events.send({"text": "é"})
        await events.done()

    async with asked(events(NEVER_S), write) as reply:
        assert reply.headers["x-test"] == "yes"
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        expected = 'data: {"text":"a\\nb"}\n\ndata: {"text":"é"}\n\n'.encode() + DONE
        assert await reply.read() == expected


async def test_events_may_be_named_by_their_type_and_end_without_done() -> None:
    async def write(events: EventStream) -> None:
        await events.send({"type": "hello", "text": "a"})
        await events.end()

    async with asked(events(NEVER_S, named=True), write) as reply:
        assert await reply.read() == b'event: hello\ndata: {"type":"hello","text":"a"}\n\n'


async def test_pings_may_be_events() -> None:
    silent = asyncio.Event()

    async def write(events: EventStream) -> None:
        await silent.wait()
        await events.end()

    ping = b"event: ping\n\n"
    async with asked(events(OFTEN_S, ping=ping), write) as reply:
        assert await reply.content.readexactly(len(ping)) == ping
        silent.set()


async def test_silence_is_filled_with_comments() -> None:
    silent = asyncio.Event()

    async def write(events: EventStream) -> None:
        await silent.wait()
        await events.send({})
        await events.done()

    async with asked(events(OFTEN_S), write) as reply:
        assert await reply.content.readline() + await reply.content.readline() == PING
        silent.set()
        assert (await reply.read()).endswith(b"data: {}\n\n" + DONE)


async def test_nothing_follows_done() -> None:
    ended = asyncio.Event()

    async def write(events: EventStream) -> None:
        await events.done()
        await asyncio.sleep(20 * OFTEN_S)
        ended.set()

    async with asked(events(OFTEN_S), write) as reply:
        assert (await reply.read()).endswith(DONE)
        await ended.wait()


async def test_failure_after_the_first_event_is_the_last_one_without_done() -> None:
    async def write(events: EventStream) -> None:
        await events.send({})
        raise EngineCrashedError("gone")

    async with asked(events(NEVER_S), write) as reply:
        content = await reply.read()
    assert content.startswith(b'data: {}\n\ndata: {"error":')
    assert DONE not in content


async def test_failure_in_a_stream_of_named_events_is_named() -> None:
    def write_error(problem: Problem, _request_id: str) -> ErrorReply:
        return ErrorReply(problem.status, {"type": "error", "why": problem.message})

    async def write(events: EventStream) -> None:
        await events.send({"type": "hello"})
        raise EngineCrashedError("gone")

    async with asked(events(NEVER_S, named=True), write, ErrorShape(write_error, paths=())) as reply:
        assert (await reply.read()).endswith(b'event: error\ndata: {"type":"error","why":"gone"}\n\n')
