"""Streams and whole responses have the same content, and a failed stream ends with its own kind of event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from llmd.api.errors import EngineCrashedError
from llmd.chat.answers.answer_text import Piece
from llmd.server.engines.supervisor import Supervisor
from llmd.server.generation.generation import Generation
from tests.clients.sse import Event, events
from tests.serving.http import Reply, send
from tests.serving.model import CONTEXT_LEN
from tests.serving.running import MODEL, RunningDaemon


def ask(daemon: RunningDaemon, **fields: Any) -> Reply:
    defaults = {"model": MODEL, "input": "Hello", "max_output_tokens": 8, "temperature": 0}
    return send(daemon, "POST", "/v1/responses", {**defaults, **fields})


def stream(daemon: RunningDaemon, **fields: Any) -> list[Event]:
    return events(ask(daemon, stream=True, **fields).content)


def text_of(body: dict[str, Any]) -> str:
    return "".join(part["text"] for item in body["output"] for part in item["content"])


def test_streamed_response_is_the_whole_one(daemon: RunningDaemon) -> None:
    whole = ask(daemon).json
    found = [json.loads(event.data) for event in stream(daemon)]
    last = found[-1]["response"]
    assert text_of(last) == text_of(whole)
    assert last["usage"]["output_tokens"] == whole["usage"]["output_tokens"] == 8
    assert (last["status"], whole["status"]) == ("incomplete", "incomplete")
    deltas = [event["delta"] for event in found if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == text_of(whole)


def test_every_event_has_its_name_in_a_line_of_its_own(daemon: RunningDaemon) -> None:
    found = stream(daemon)
    assert [event.name for event in found] == [json.loads(event.data)["type"] for event in found]


def test_sampling_of_the_model_is_told_where_the_request_says_nothing(daemon: RunningDaemon) -> None:
    body = ask(daemon, temperature=None).json
    assert (body["temperature"], body["top_p"]) == (1.0, 1.0)
    assert ask(daemon, top_p=0.5).json["top_p"] == 0.5


def test_logprobs_are_given_on_request(daemon: RunningDaemon) -> None:
    (item,) = ask(daemon, top_logprobs=2).json["output"]
    logprobs = item["content"][0]["logprobs"]
    assert len(logprobs) == 8
    assert all(len(entry["top_logprobs"]) == 2 for entry in logprobs)
    streamed = [json.loads(event.data) for event in stream(daemon, top_logprobs=2)]
    deltas = [entry for e in streamed if e["type"].endswith("text.delta") for entry in e["logprobs"]]
    assert [entry["token"] for entry in deltas] == [entry["token"] for entry in logprobs]


def test_failure_ends_the_stream_with_the_response(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_self: Generation, _supervisor: Supervisor) -> AsyncIterator[tuple[int, Piece]]:
        yield 0, Piece("Well")
        raise EngineCrashedError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(Generation, "pieces", failing)
        found = stream(daemon)
    last = json.loads(found[-1].data)
    assert found[-1].name == last["type"] == "response.failed"
    assert last["response"]["error"] == {"code": "server_error", "message": "gone"}


def test_prompt_longer_than_the_window_is_refused_before_a_stream_begins(daemon: RunningDaemon) -> None:
    reply = ask(daemon, input="x" * CONTEXT_LEN, stream=True)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert reply.error["param"] == "input"
