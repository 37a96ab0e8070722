"""Access to a real daemon over TCP and a Unix socket, and to servers that misbehave."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from llmd.api.errors import ContextLengthError, DaemonUnreachableError, LlmdError
from llmd.config import TcpAddress, UnixAddress
from llmd_tui.daemon.http_daemon import HttpDaemon
from tests.serving.model import write_model
from tests.serving.other_server import served
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "stream": True}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("tui"))
    write_model(directories.models / MODEL)
    with running_daemon(directories) as daemon:
        yield daemon


@pytest.fixture(params=["tcp", "unix"])
async def daemon(request: pytest.FixtureRequest, running: RunningDaemon) -> AsyncIterator[HttpDaemon]:
    address = running.tcp if request.param == "tcp" else UnixAddress(running.socket)
    found = HttpDaemon([address])
    yield found
    await found.close()


async def test_streams_an_answer_and_its_events(daemon: HttpDaemon) -> None:
    async with aclosing(daemon.events()) as events:
        first = await anext(events)
        assert (first.type, [one["name"] for one in first.fields["models"]]) == ("snapshot", [MODEL])
        body = {**CHAT, "max_tokens": 6}
        pieces = [piece async for piece in daemon.stream("/v1/chat/completions", body, request_id="mine")]
        assert pieces[-1]["choices"][0]["finish_reason"] == "length"
        seen = []
        async for event in events:
            if event.type == "request":
                seen.append(event.fields["phase"])
                assert event.fields["request_id"] == "mine"
            if seen[-1:] == ["end"]:
                break
        assert seen[0] == "begin"
        last = event.number
    async with aclosing(daemon.events(last - 1)) as again:
        assert (await anext(again)).number == last


async def test_closing_a_stream_ends_the_request(daemon: HttpDaemon) -> None:
    async with aclosing(daemon.stream("/v1/chat/completions", {**CHAT, "max_tokens": 500})) as pieces:
        await anext(pieces)
    async with aclosing(daemon.events()) as events:
        async for event in events:
            if event.type == "report" and event.fields["models"][0]["report"]["running"] == 0:
                return


async def test_gets_and_posts_json(daemon: HttpDaemon) -> None:
    assert (await daemon.get("/llmd/ps"))["models"][0]["name"] == MODEL
    counted = await daemon.post(
        "/v1/chat/completions/input_tokens", {"model": MODEL, "messages": CHAT["messages"]}
    )
    assert counted["input_tokens"] > 0


async def test_first_requests_at_the_same_time_share_a_session(
    daemon: HttpDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.gather(*(daemon.get("/llmd/ps") for _ in range(4)))
    await daemon.close()
    with warnings.catch_warnings(record=True) as warned:  # of sessions that nobody closed
        gc.collect()
    assert [str(one.message) for one in warned] == []
    # The daemon, which runs in this process, logs what it does.
    assert [one for one in caplog.records if not one.name.startswith("llmd.")] == []


async def test_models_are_copied_and_deleted_with_empty_answers(daemon: HttpDaemon) -> None:
    assert await daemon.post("/api/copy", {"source": MODEL, "destination": "second"}) == {}
    assert await daemon.delete("/api/delete", {"model": "second"}) == {}
    with pytest.raises(LlmdError, match="model 'second' not found"):
        await daemon.delete("/api/delete", {"model": "second"})


async def test_refusals_have_the_words_of_the_daemon(daemon: HttpDaemon) -> None:
    with pytest.raises(LlmdError, match=r"absent is not loaded.*llmd ps"):
        await daemon.post("/llmd/stop", {"model": "absent"})
    with pytest.raises(LlmdError, match="no model"):
        _ = [piece async for piece in daemon.stream("/v1/chat/completions", {**CHAT, "model": "absent"})]


async def test_a_prompt_that_is_too_long_is_told_with_both_lengths(daemon: HttpDaemon) -> None:
    messages = [{"role": "user", "content": "Hello " * 5000}]
    with pytest.raises(ContextLengthError) as refused:
        _ = [piece async for piece in daemon.stream("/v1/chat/completions", {**CHAT, "messages": messages})]
    assert refused.value.prompt_len > refused.value.context_len > 0


async def test_a_daemon_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    absent = HttpDaemon([UnixAddress(tmp_path / "no.sock")])
    with pytest.raises(DaemonUnreachableError, match=r"no\.sock.*llmd serve"):
        await absent.get("/llmd/ps")


async def other(request: web.Request) -> web.StreamResponse:
    """A server that is no daemon."""
    if request.path == "/llmd/pull":
        return web.Response(
            text='{"step": "a"}\n\n{"error": {"message": "the disk is full", "hint": "free some"}}'
        )
    if request.path == "/long":
        return web.Response(body=b"data: " + b"x" * (5 << 20))
    if request.path == "/cut":
        reply = web.StreamResponse()
        await reply.prepare(request)
        await reply.write(b'data: {"a": 1}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return reply
    return web.Response(text="<html>", status=404 if request.path == "/404" else 200)


async def read_until_error(
    pieces: AsyncGenerator[dict[str, Any], None],
) -> tuple[list[dict[str, Any]], LlmdError | None]:
    """What came, and the error that ended it."""
    came: list[dict[str, Any]] = []
    add = came.append
    try:
        async for piece in pieces:
            add(piece)
    except LlmdError as error:
        return came, error
    return came, None


async def test_other_servers_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"
    async with served(web.UnixSite, other, path=str(path)):
        daemon = HttpDaemon([UnixAddress(path)])
        for asked in ("/404", "/200"):
            with pytest.raises(LlmdError, match="not an llmd daemon"):
                await daemon.get(asked)
        with pytest.raises(LlmdError, match="not an llmd daemon"):
            _ = [piece async for piece in daemon.stream("/long")]
        steps, error = await read_until_error(daemon.lines("/llmd/pull", {}))
        assert (steps, str(error)) == ([{"step": "a"}], "the disk is full (free some)")
        pieces, error = await read_until_error(daemon.stream("/cut"))
        assert pieces == [{"a": 1}]
        assert isinstance(error, DaemonUnreachableError)
        assert "was lost: it ended in the middle of a reply (see" in str(error)
        await daemon.close()


async def test_a_daemon_that_comes_back_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    daemon = HttpDaemon([UnixAddress(path)])

    async def version(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"version": "1"})

    for _ in range(2):
        async with served(web.UnixSite, version, path=str(path)):
            assert await daemon.get("/version") == {"version": "1"}
        path.unlink(missing_ok=True)
        with pytest.raises(DaemonUnreachableError):
            await daemon.get("/version")
    await daemon.close()


async def test_a_stream_ends_although_another_request_finds_that_the_daemon_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    daemon = HttpDaemon([UnixAddress(path)])
    ending = asyncio.Event()

    async def followed(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        await reply.write(b'data: {"a": 1}\n\n')
        await ending.wait()
        return reply

    async with served(web.UnixSite, followed, path=str(path)), aclosing(daemon.stream("/x")) as pieces:
        await anext(pieces)
        path.unlink()
        with pytest.raises(DaemonUnreachableError):
            await daemon.get("/version")
        ending.set()
        assert await asyncio.wait_for(anext(pieces, None), 10) is None
    await daemon.close()


async def test_a_key_is_sent() -> None:
    keys: asyncio.Queue[str | None] = asyncio.Queue()

    async def version(request: web.Request) -> web.StreamResponse:
        keys.put_nowait(request.headers.get("Authorization"))
        assert request.headers["x-llmd-interface"] == "tui"
        return web.json_response({})

    async with served(web.TCPSite, version, host="127.0.0.1", port=0) as runner:
        daemon = HttpDaemon([TcpAddress("127.0.0.1", runner.addresses[0][1])], key="secret")
        await daemon.get("/version")
        await daemon.close()
    assert keys.get_nowait() == "Bearer secret"
