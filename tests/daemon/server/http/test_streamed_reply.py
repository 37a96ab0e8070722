from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from aiohttp import web

from llmd.api.errors import EngineCrashedError, RequestError
from llmd.api.problem import ErrorReply, ErrorShape, Problem
from llmd.server.http.line_stream import LineStream
from tests.serving.streams import NEVER_S, OFTEN_S, asked


def patient(request: web.Request) -> LineStream:
    return LineStream(request, {"x-test": "yes"}, NEVER_S)


def impatient(request: web.Request) -> LineStream:
    return LineStream(request, {}, OFTEN_S)


async def test_status_line_goes_out_after_a_silence() -> None:
    silent = asyncio.Event()

    async def write(lines: LineStream) -> None:
        await silent.wait()
        await lines.send({})
        await lines.end()

    async with asked(impatient, write) as reply:
        assert reply.status == 200
        silent.set()
        assert await reply.read() == b"{}\n"


async def test_nothing_follows_the_end(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def write(lines: LineStream) -> None:
        await lines.send({})
        await lines.end()
        await asyncio.sleep(20 * OFTEN_S)
        ended.set()

    async with asked(impatient, write) as reply:
        assert await reply.read() == b"{}\n"
        await ended.wait()
    assert "task_failed" not in caplog.text


async def test_a_reply_is_freed_with_its_end() -> None:
    known: list[weakref.ref[LineStream]] = []

    async def write(lines: LineStream) -> None:
        known.append(weakref.ref(lines))
        await lines.send({})
        await lines.end()

    gc.disable()
    try:
        async with asked(patient, write) as reply:
            await reply.read()
        (freed,) = known
        assert freed() is None
    finally:
        gc.enable()


async def test_failure_before_the_first_value_has_a_status_of_its_own() -> None:
    async def write(_lines: LineStream) -> None:
        raise RequestError("no", param="p")

    async with asked(patient, write) as reply:
        assert reply.status == 400
        assert reply.headers["Content-Type"].startswith("application/json")


async def test_failure_after_the_first_value_is_the_last_one() -> None:
    async def write(lines: LineStream) -> None:
        await lines.send({})
        raise EngineCrashedError("gone")

    async with asked(patient, write) as reply:
        content = await reply.read()
    assert content.startswith(b'{}\n{"error":')
    assert b'"code":"engine_crashed"' in content


async def test_failure_in_a_stream_has_the_form_of_the_dialect() -> None:
    def write_error(problem: Problem, _request_id: str) -> ErrorReply:
        return ErrorReply(problem.status, {"why": problem.message})

    async def write(lines: LineStream) -> None:
        await lines.send({})
        raise EngineCrashedError("gone")

    async with asked(patient, write, ErrorShape(write_error, paths=())) as reply:
        assert (await reply.read()).endswith(b'{"why":"gone"}\n')


async def test_failure_that_nobody_foresaw_is_told_without_its_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def write(lines: LineStream) -> None:
        await lines.send({})
        raise ZeroDivisionError("secret")

    async with asked(patient, write) as reply:
        content = await reply.read()
    assert b"internal_error" in content
    assert b"secret" not in content
    assert "secret" in caplog.text
