from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from openai.types.responses.responses_server_event import ResponsesServerEvent

from llmd.server.dialects.openai.responses.socket import error_message
from llmd.server.errors import UnauthorizedError
from llmd.server.http.problems import INTERNAL, problem_of
from tests.clients.strict import check
from tests.clients.strict_responses import BEYOND_OPENAI
from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon

ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}
LIMIT_S = 20.0


class Connection:
    """A client's end."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def create(self, **fields: Any) -> None:
        defaults = {"type": "response.create", "model": MODEL, "max_output_tokens": 4, "temperature": 0}
        await self.socket.send_json({**defaults, **fields})

    async def events(self) -> list[dict[str, Any]]:
        """Return the events of the next response."""
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] not in ENDS:
            text = await self.socket.receive_str(timeout=LIMIT_S)
            check(ResponsesServerEvent, text, beyond=BEYOND_OPENAI)
            found.append(json.loads(text))
        return found

    async def ask(self, **fields: Any) -> dict[str, Any]:
        """Return the last event of the response to a request."""
        await self.create(**{"input": "Hello", **fields})
        return (await self.events())[-1]


@asynccontextmanager
async def connected(daemon: RunningDaemon) -> AsyncIterator[Connection]:
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{daemon.url}/v1/responses") as socket:
        yield Connection(socket)


def texts(response: dict[str, Any]) -> list[str]:
    return [item["content"][0]["text"] for item in response["output"]]


async def test_events_are_those_of_a_stream(daemon: RunningDaemon) -> None:
    fields = {"model": MODEL, "input": "Hello", "max_output_tokens": 4, "temperature": 0, "stream": True}
    streamed = await asyncio.to_thread(send, daemon, "POST", "/v1/responses", fields)
    async with connected(daemon) as connection:
        await connection.create(input="Hello")
        found = await connection.events()
    assert [event["type"] for event in found] == [event["type"] for event in streamed.chunks]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert texts(found[-1]["response"]) == texts(streamed.chunks[-1]["response"])


async def test_the_last_response_is_continued_without_being_stored(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        first = (await connection.ask())["response"]
        second = (await connection.ask(input="More", previous_response_id=first["id"]))["response"]
        earlier = await connection.ask(input="More", previous_response_id=first["id"])
    whole = [{"role": "user", "content": "Hello"}, *first["output"], {"role": "user", "content": "More"}]
    fields = {"model": MODEL, "input": whole, "max_output_tokens": 4, "temperature": 0}
    by_hand = (await asyncio.to_thread(send, daemon, "POST", "/v1/responses", fields)).json
    assert texts(second) == texts(by_hand)
    assert second["usage"]["input_tokens"] == by_hand["usage"]["input_tokens"]
    assert (earlier["type"], earlier["status"]) == ("error", 400)
    assert earlier["error"]["code"] == "previous_response_not_found"


async def test_a_stored_response_is_continued_on_another_connection(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        first = (await connection.ask(store=True))["response"]
        unstored = (await connection.ask())["response"]
    async with connected(daemon) as connection:
        assert (await connection.ask(previous_response_id=first["id"]))["type"] == "response.incomplete"
        lost = await connection.ask(previous_response_id=unstored["id"])
        assert lost["error"]["code"] == "previous_response_not_found"


async def test_a_failed_turn_forgets_what_it_continued(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        first = (await connection.ask())["response"]
        failed = await connection.ask(previous_response_id=first["id"], top_p=7)
        assert failed["error"]["param"] == "top_p"
        again = await connection.ask(previous_response_id=first["id"])
        assert again["error"]["code"] == "previous_response_not_found"


async def test_requests_are_answered_one_after_the_other(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        for _ in range(3):
            await connection.create(input="Hello")
        ids: list[str] = []
        for _ in range(3):
            events = await connection.events()
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            ids.append(events[-1]["response"]["id"])
    assert len(set(ids)) == 3


async def test_a_prompt_is_prepared_without_an_answer(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        await connection.create(input="Prepare " * 8, generate=False)
        events = await connection.events()
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        prepared = events[-1]["response"]
        assert (prepared["output"], prepared["usage"]["output_tokens"]) == ([], 0)
        answer = (await connection.ask(input="Go", previous_response_id=prepared["id"]))["response"]
        assert answer["usage"]["input_tokens"] > prepared["usage"]["input_tokens"]
        assert answer["usage"]["input_tokens_details"]["cached_tokens"] >= 48


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        (b"{}", "invalid_json"),
        ('{"type": "response.stop"}', "unsupported_event"),
        ("{}", "unsupported_event"),
        ('{"type": "response.create", "input": "a", "stream_id": "b"}', "unsupported_parameter"),
        ('{"type": "response.create", "input": "a", "background": true}', "unsupported_parameter"),
        ('{"type": "response.create", "input": "a", "model": "nobody"}', "model_not_found"),
        ('{"type": "response.create"}', "invalid_value"),
    ],
)
async def test_a_wrong_message_is_refused_and_the_connection_stays(
    daemon: RunningDaemon, message: str | bytes, code: str
) -> None:
    async with connected(daemon) as connection:
        if isinstance(message, bytes):
            await connection.socket.send_bytes(message)
        else:
            await connection.socket.send_str(message)
        (refused,) = await connection.events()
        assert (refused["type"], refused["error"]["code"]) == ("error", code)
        assert refused["status"] == (404 if code == "model_not_found" else 400)
        assert (await connection.ask())["type"] == "response.incomplete"


async def test_steering_is_refused_while_the_answer_goes_on(daemon: RunningDaemon) -> None:
    async with connected(daemon) as connection:
        await connection.create(input="Hello", max_output_tokens=200, ignore_eos=True)
        begun = json.loads(await connection.socket.receive_str(timeout=LIMIT_S))
        steer = {"previous_response_id": begun["response"]["id"], "input": "Be brief."}
        await connection.socket.send_json({"type": "response.steer", **steer})
        events = await connection.events()
    kinds = [event["type"] for event in events]
    assert kinds.index("response.steer.failed") < kinds.index("response.incomplete")
    refused = events[kinds.index("response.steer.failed")]
    assert (refused["error"]["code"], refused["steer"]) == ("steering_not_supported", steer)
    assert events[-1]["response"]["usage"]["output_tokens"] == 200


async def test_closing_ends_the_answer(daemon: RunningDaemon) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{daemon.url}/llmd/events") as feed:
        await feed.content.readuntil(b"\n\n")  # the snapshot
        async with connected(daemon) as connection:
            await connection.create(input="Hello", max_output_tokens=400, ignore_eos=True)
            await connection.socket.receive_str(timeout=LIMIT_S)
        async with asyncio.timeout(LIMIT_S):
            while True:
                event = (await feed.content.readuntil(b"\n\n")).partition(b"data: ")[2]
                if b'"phase":"end"' in event and b'"route":"/v1/responses"' in event:
                    break
    ended = json.loads(event)
    assert (ended["status"], ended["finish"]) == (499, None)
    assert ended["completion_tokens"] < 400


async def test_each_turn_is_a_request_of_its_own(daemon: RunningDaemon) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{daemon.url}/llmd/events") as feed:
        async with connected(daemon) as connection:
            await connection.ask()
            await connection.ask()
        ids: list[str] = []
        async with asyncio.timeout(LIMIT_S):
            while len(ids) < 2:
                event = (await feed.content.readuntil(b"\n\n")).partition(b"data: ")[2]
                if b'"phase":"end"' in event:
                    ids.append(json.loads(event)["request_id"])
    assert [one.rpartition("-")[2] for one in ids] == ["1", "2"]


def test_without_an_upgrade_the_route_says_what_it_is(daemon: RunningDaemon) -> None:
    reply = send(daemon, "GET", "/v1/responses")
    assert (reply.status, reply.error["code"]) == (426, "upgrade_required")
    assert reply.headers["Upgrade"] == "websocket"


async def test_pages_of_others_cannot_connect(daemon: RunningDaemon) -> None:
    async with aiohttp.ClientSession(headers={"Origin": "https://evil.example"}) as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await client.ws_connect(f"{daemon.url}/v1/responses")
    assert caught.value.status == 403


def test_failures_of_requests_have_the_clients_form() -> None:
    for problem in (INTERNAL, problem_of(UnauthorizedError("a", code="b"))):
        message = error_message(problem)
        check(ResponsesServerEvent, json.dumps(message))
        assert message["status"] == problem.status
    assert message["error"]["headers"] == {"www-authenticate": "Bearer"}
