"""Anthropic's message routes, over plain HTTP."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from anthropic.types import ErrorResponse
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.errors import EngineCrashedError, RequestError
from llmd.chat.answers.answer_text import Piece
from llmd.requests.fields import RequestFields
from llmd.server.dialects.anthropic.messages import PING, read_request
from llmd.server.engines.supervisor import Supervisor
from llmd.server.generation.generation import Generation
from llmd.server.models.served_model import ServedModel
from tests.clients.sse import Event, events
from tests.clients.strict import check
from tests.serving.garbage import garbage
from tests.serving.http import Reply, send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon

HELLO = [{"role": "user", "content": "Hello"}]


def ask(daemon: RunningDaemon, path: str = "/v1/messages", **fields: Any) -> Reply:
    defaults = {"model": MODEL, "max_tokens": 8, "temperature": 0, "messages": HELLO}
    return send(daemon, "POST", path, {**defaults, **fields})


def text_of(reply: Reply) -> str:
    return "".join(block["text"] for block in reply.json["content"])


def test_queries_of_clients_are_tolerated(daemon: RunningDaemon) -> None:
    assert text_of(ask(daemon, "/v1/messages?beta=true")) == text_of(ask(daemon))
    assert ask(daemon, "/v1/messages/count_tokens?beta=true").status == 200


def test_model_is_answered_under_the_name_that_was_asked_for(daemon: RunningDaemon) -> None:
    reply = ask(daemon, model="gpt-4o")
    assert reply.json["model"] == "gpt-4o"
    assert reply.headers["x-llmd-model"] == MODEL


def test_what_is_ignored_is_named_in_a_header(daemon: RunningDaemon) -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    redacted = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "AA"}]}
    reply = ask(
        daemon,
        metadata={"user_id": "me"},
        service_tier="auto",
        thinking=thinking,
        messages=[*HELLO, redacted, *HELLO],
    )
    assert reply.headers["x-llmd-ignored"] == (
        "metadata, service_tier, messages.1.content.0.redacted_thinking"
    )


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_answered_where_no_token_may_be(daemon: RunningDaemon, *, stream: bool) -> None:
    reply = ask(daemon, max_tokens=0, stream=stream)
    if stream:
        kinds = [event.name for event in events(reply.content)]
        assert kinds == ["message_start", "message_delta", "message_stop"]
    else:
        assert (reply.json["content"], reply.json["stop_reason"]) == ([], "max_tokens")


def test_streamed_usage_is_that_of_the_whole_answer(daemon: RunningDaemon) -> None:
    usage = ask(daemon).json["usage"]
    found = [json.loads(event.data) for event in events(ask(daemon, stream=True).content)]
    assert found[0]["message"]["usage"]["output_tokens"] == 1
    assert found[-2]["usage"]["output_tokens"] == usage["output_tokens"] == 8


def test_prompt_longer_than_the_window_is_refused_before_a_stream_begins(daemon: RunningDaemon) -> None:
    long = [{"role": "user", "content": "x" * CONTEXT_LEN}]
    counted = ask(daemon, "/v1/messages/count_tokens", messages=long).json["input_tokens"]
    reply = ask(daemon, messages=long, stream=True)
    assert reply.status == 400
    assert reply.error["message"] == f"prompt is too long: {counted} tokens > {CONTEXT_LEN} maximum"


def test_failure_in_a_stream_is_an_event_with_the_request_id(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_self: Generation, _supervisor: Supervisor) -> AsyncIterator[tuple[int, Piece]]:
        yield 0, Piece("Well")
        raise EngineCrashedError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(Generation, "pieces", failing)
        reply = ask(daemon, stream=True)
    last = events(reply.content)[-1]
    body = check(ErrorResponse, last.data)
    assert (reply.status, last.name) == (200, "error")
    assert (body.error.type, body.error.message) == ("api_error", "gone")
    assert body.request_id == reply.headers["request-id"]


@given(
    field=st.sampled_from(["messages", "system", "tools", "tool_choice", "thinking", "output_config"]),
    value=garbage,
)
def test_garbage_is_refused_and_never_a_failure(field: str, value: Any) -> None:
    with contextlib.suppress(RequestError):
        read_request(RequestFields({"messages": HELLO, field: value}))


def test_silence_is_filled_with_an_event() -> None:
    assert events(PING) == [Event("ping", '{"type":"ping"}')]


def test_tools_are_part_of_the_prompt_unless_none_may_be_called(daemon: RunningDaemon) -> None:
    def counted(**fields: Any) -> int:
        found: int = ask(daemon, "/v1/messages/count_tokens", **fields).json["input_tokens"]
        return found

    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    assert counted(tools=tools) > counted()
    assert counted(tools=tools, tool_choice={"type": "none"}) == counted()


def test_images_are_refused_by_the_place_they_stand_in(daemon: RunningDaemon) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    reply = ask(daemon, messages=[{"role": "user", "content": [image]}])
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert "messages.0.content.0" in reply.error["message"]


def test_tokens_are_counted_without_the_engine(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked(_self: ServedModel) -> None:
        raise AssertionError("the engine was waited for")

    with monkeypatch.context() as patch:
        patch.setattr(ServedModel, "ready", asked)
        counted = ask(daemon, "/v1/messages/count_tokens").json
    usage = ask(daemon).json["usage"]
    assert counted == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}


@pytest.mark.parametrize("path", ["/api/hello", "/"])
def test_probes_of_claude_code_are_answered_and_not_logged(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    caplog.set_level("INFO")
    reply = send(daemon, "HEAD", path)
    assert (reply.status, reply.content) == (200, b"")
    assert send(daemon, "GET", "/v1/models").status == 200
    # A request is logged after its reply, so one of an earlier test may be logged now.
    deadline = time.monotonic() + 20.0
    while "/v1/models" not in (logged := [vars(record).get("path") for record in caplog.records]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert path not in logged, "the probe would be in the log by now"


def test_hello_says_who_answers(daemon: RunningDaemon) -> None:
    assert send(daemon, "GET", "/api/hello").json == {"message": f"llmd {daemon.serving.version}"}
