from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.parts import Text
from llmd.api.problem import Problem
from llmd.server.dialects.openai.responses.calls import FunctionCall
from llmd.server.dialects.openai.responses.output import Output
from llmd.server.dialects.openai.responses.response import Response, error_event
from llmd.server.generation.generation import Usage
from tests.clients.strict_responses import check_event, check_response
from tests.serving.pieces import pieces

USAGE = Usage(prompt_tokens=20, cached_tokens=16, completion_tokens=5)
ECHO: dict[str, Any] = {
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {"a": "b"},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
GONE = Problem(500, "server_error", "engine_crashed", "gone")


def response() -> Response:
    return Response(
        "m", ECHO, Output(lambda name: FunctionCall({"name": name}), lambda _tokens: [], summarized=False)
    )


def events(finish: str) -> list[dict[str, Any]]:
    made = response()
    found = [event for piece in pieces(Text("a"), finish=finish) for event in made.events(piece)]
    found.append(made.end(USAGE))
    for event in found:
        check_event(json.dumps(event))
    return found


@pytest.mark.parametrize(("finish", "status"), [("stop", "completed"), ("length", "incomplete")])
def test_a_stream_begins_and_ends_with_the_response(finish: str, status: str) -> None:
    found = events(finish)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    created, begun, *_, last = found
    assert [created["type"], begun["type"]] == ["response.created", "response.in_progress"]
    assert created["response"] == begun["response"]
    assert (created["response"]["status"], created["response"]["output"]) == ("in_progress", [])
    assert created["response"]["usage"] is None
    assert (last["type"], last["response"]["status"]) == (f"response.{status}", status)
    assert last["response"]["output"][0]["content"][0]["text"] == "a"
    assert last["response"].items() >= ECHO.items()
    assert len({event["response"]["id"] for event in (created, begun, last)}) == 1


def test_the_whole_response_is_one_that_clients_know() -> None:
    made = response()
    for piece in pieces(Text("a")):
        made.add(piece)
    body = check_response(json.dumps(made.body(USAGE)))
    assert (body.status, body.output_text, body.error, body.incomplete_details) == (
        "completed",
        "a",
        None,
        None,
    )
    assert body.completed_at >= body.created_at
    assert (body.usage.input_tokens, body.usage.output_tokens, body.usage.total_tokens) == (20, 5, 25)
    assert body.usage.input_tokens_details.cached_tokens == 16


def test_a_response_that_a_limit_ended_says_so() -> None:
    body = events("length")[-1]["response"]
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert body["completed_at"] is None


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_prompt"), (429, "rate_limit_exceeded"), (500, "server_error")]
)
def test_a_failure_ends_the_stream_with_the_response(status: int, code: str) -> None:
    made = response()
    begun = list(made.events(pieces(Text("a"))[0]))
    failed = made.failed(Problem(status, "x", "y", "gone"))
    check_event(json.dumps(failed))
    assert failed["sequence_number"] == len(begun)
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"] == {"code": code, "message": "gone"}


def test_a_failure_before_the_first_event_is_an_error_alone() -> None:
    assert response().failed(GONE) == error_event(GONE)
    event = check_event(json.dumps(error_event(GONE)))
    assert (event.type, event.code, event.message, event.sequence_number) == (
        "error",
        "engine_crashed",
        "gone",
        0,
    )
    assert event.error == {"type": "server_error", "code": "engine_crashed", "message": "gone", "param": None}
