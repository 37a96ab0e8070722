"""The client works with a real daemon, and reports errors of other servers."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.benchmark.client import BenchmarkClient, ServedName
from llmd.benchmark.load import Sample
from llmd.benchmark.target import CHAT, COMPLETIONS, PATHS, Endpoint, Target
from llmd.benchmark.timeline import Outcome
from llmd.client_errors import EXIT_REFUSED
from tests.serving.certificates.pairs import FIRST, SECOND
from tests.serving.other_server import Handler, served
from tests.serving.running import MODEL, RunningDaemon

SAMPLE = Sample("Hello", 5, 6)


async def asked(target: Target, kind: str = COMPLETIONS, **fields: object) -> Outcome:
    endpoint = Endpoint(kind, PATHS[kind], MODEL, {"temperature": 0, "ignore_eos": True, **fields})
    ticks = itertools.count(100.0)
    async with BenchmarkClient(target, silence_s=10.0, clock=lambda: next(ticks)) as client:
        return await client.ask(endpoint, SAMPLE, "bench-1", arrived_s=90.0)


@asynccontextmanager
async def other_server(folder: Path, handler: Handler) -> AsyncIterator[Target]:
    """Run a server that is not llmd on a Unix socket."""
    async with served(web.UnixSite, handler, path=str(folder / "s")):
        yield Target.parse(f"unix:{folder}/s")


@pytest.mark.parametrize("kind", [COMPLETIONS, CHAT])
@pytest.mark.parametrize("unix", [True, False])
async def test_asks_the_daemon_on_both_of_its_addresses(
    daemon: RunningDaemon, kind: str, *, unix: bool
) -> None:
    outcome = await asked(Target.parse(f"unix:{daemon.socket}" if unix else daemon.url), kind)
    assert outcome.error == ""
    assert (outcome.start_s, outcome.queue_s) == (100.0, 10.0)
    assert outcome.output_len == 6
    assert outcome.prompt_len >= 5
    assert outcome.text
    assert 0 < outcome.ttft_s <= outcome.latency_s


async def test_a_refused_request_has_status_and_reason(daemon: RunningDaemon) -> None:
    outcome = await asked(Target.parse(daemon.url), temperature=9)
    assert outcome.error.startswith("400: temperature")


async def test_finds_the_first_model_or_the_one_that_was_named(daemon: RunningDaemon) -> None:
    root = str(daemon.directories.models / MODEL)
    async with BenchmarkClient(Target.parse(daemon.url)) as client:
        assert await client.model(None) == ServedName(MODEL, root)
        assert await client.model(MODEL) == ServedName(MODEL, root)
        assert await client.model("other") == ServedName("other", "other")


async def test_a_server_that_lists_nothing_needs_a_name(tmp_path: Path) -> None:
    async def not_found(_: web.Request) -> web.Response:
        return web.Response(status=404, text="nothing here")

    async with other_server(tmp_path, not_found) as target, BenchmarkClient(target) as client:
        assert await client.model("mine") == ServedName("mine", "mine")
        with pytest.raises(LlmdError) as caught:
            await client.model(None)
        assert "--model" in caught.value.hint
        assert (await asked(target)).error == "404: nothing here"


async def test_no_server_at_all_is_said(tmp_path: Path) -> None:
    target = Target.parse(f"unix:{tmp_path}/none")
    async with BenchmarkClient(target) as client:
        with pytest.raises(DaemonUnreachableError) as caught:
            await client.model(None)
    assert str(tmp_path / "none") in caught.value.message
    assert (await asked(target)).error


async def test_headers_and_the_id_of_the_request_are_sent(tmp_path: Path) -> None:
    seen = []

    async def keep(request: web.Request) -> web.Response:
        seen.append(request.headers)
        return web.Response(status=401)

    endpoint, headers = Endpoint(COMPLETIONS, "/mine", MODEL), {"Authorization": "Bearer k"}
    async with other_server(tmp_path, keep) as target, BenchmarkClient(target, headers) as client:
        outcome = await client.ask(endpoint, SAMPLE, "bench-7", arrived_s=0.0)
    assert outcome.error == "401"
    assert (seen[0]["Authorization"], seen[0]["x-request-id"]) == ("Bearer k", "bench-7")


async def test_certificates_are_checked_against_those_that_were_given() -> None:
    async def not_found(_: web.Request) -> web.Response:
        return web.Response(status=404)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(FIRST.chain, FIRST.key)
    async with served(web.TCPSite, not_found, host="127.0.0.1", port=0, ssl_context=context) as runner:
        port = runner.addresses[0][1]
        target = Target.parse(f"https://localhost:{port}")
        async with BenchmarkClient(target, ca_file=FIRST.chain) as client:
            assert (await client.model("mine")).name == "mine"
        async with BenchmarkClient(target, ca_file=SECOND.chain) as client:
            with pytest.raises(DaemonUnreachableError, match="certificate"):
                await client.model("mine")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'data: {"choices": [{"text": "a"}]}\n\n', "the stream ended before the answer did"),
        (b"data: <html>\n\n", "JSON is malformed"),
        (b"<html></html>", "the stream ended before the answer did"),
    ],
)
async def test_a_stream_of_something_else_is_a_failure(tmp_path: Path, content: bytes, error: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=content)

    async with other_server(tmp_path, answer) as target:
        assert error in (await asked(target)).error


async def test_a_connection_that_breaks_is_a_failure_with_what_had_come(tmp_path: Path) -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"text": "a"}]}\n\n')
        assert request.transport is not None
        request.transport.close()
        return response

    async with other_server(tmp_path, break_off) as target:
        outcome = await asked(target)
    assert outcome.text == "a"
    assert outcome.error


@pytest.mark.parametrize("name", [None, MODEL])
async def test_a_refused_key_is_named_as_the_reason(tmp_path: Path, name: str | None) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "an API key is required"}}, status=401)

    async with other_server(tmp_path, refuse) as target, BenchmarkClient(target) as client:
        with pytest.raises(LlmdError, match="401: an API key is required") as caught:
            await client.model(name)
    assert (caught.value.exit_code, "LLMD_API_KEY" in caught.value.hint) == (EXIT_REFUSED, True)
