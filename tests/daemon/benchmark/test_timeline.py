"""Streams with hand-made times become outcomes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from llmd.benchmark.timeline import Timeline, error_message


def event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def text(content: str, finish: str | None = None) -> bytes:
    """Return a chunk of a completion."""
    return event(choices=[{"index": 0, "text": content, "finish_reason": finish}], usage=None)


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """Return a chunk of a chat."""
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


USAGE = event(choices=[], usage={"prompt_tokens": 11, "completion_tokens": 4})
DONE = b"data: [DONE]\n\n"


def timeline(*moments: tuple[float, bytes]) -> Timeline:
    """Return a timeline sent at 100 s; the times are in seconds after that."""
    made = Timeline(10, 100.0)
    for after_s, content in moments:
        made.feed(content, 100.0 + after_s)
    return made


def test_a_completion_has_the_times_of_its_chunks() -> None:
    outcome = timeline(
        (0.5, text("a")), (0.75, text("b")), (1.75, text("c")), (2.0, text("", "length") + USAGE + DONE)
    ).outcome(0.25)
    assert outcome.error == ""
    assert (outcome.start_s, outcome.queue_s, outcome.ttft_s) == (100.0, 0.25, 0.5)
    assert outcome.itls_s == (0.25, 1.0)
    assert outcome.latency_s == 2.0
    assert (outcome.prompt_len, outcome.output_len, outcome.text) == (11, 4, "abc")


def test_the_chunks_that_open_and_close_a_chat_are_no_output() -> None:
    outcome = timeline(
        (0.5, b": ping\n\n"),
        (1.0, delta(role="assistant", content="")),
        (1.5, delta(reasoning_content="hm")),
        (2.0, delta(content="a")),
        (2.5, delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}])),
        (3.0, delta("tool_calls") + DONE),
    ).outcome()
    assert (outcome.ttft_s, outcome.itls_s, outcome.latency_s) == (1.5, (0.5, 0.5), 3.0)
    assert (outcome.text, outcome.output_len, outcome.prompt_len) == ("hma", None, 10)


def test_an_answer_without_text_has_its_first_chunk_for_a_first_output() -> None:
    outcome = timeline((0.5, delta(role="assistant", content="")), (0.75, delta("stop") + DONE)).outcome()
    assert (outcome.error, outcome.ttft_s, outcome.itls_s, outcome.latency_s) == ("", 0.5, (), 0.75)


def test_usage_on_the_last_chunk_with_text_counts_too() -> None:
    last = event(
        choices=[{"text": "a", "finish_reason": "stop"}], usage={"prompt_tokens": 3, "completion_tokens": 1}
    )
    outcome = timeline((0.5, last + DONE)).outcome()
    assert (outcome.error, outcome.prompt_len, outcome.output_len) == ("", 3, 1)


@pytest.mark.parametrize("moments", [(), ((0.5, text("a")),), ((0.5, DONE),)])
def test_a_stream_that_just_stops_is_an_error(moments: tuple[tuple[float, bytes], ...]) -> None:
    assert timeline(*moments).outcome().error == "the stream ended before the answer did"


def test_an_error_within_the_stream_is_that_of_the_request() -> None:
    failed = event(error={"message": "the engine died", "type": "server_error"})
    outcome = timeline((0.5, text("a")), (1.0, failed)).outcome()
    assert (outcome.error, outcome.text, outcome.ttft_s) == ("the engine died", "a", 0.5)


def test_what_the_client_says_stands_where_the_stream_said_nothing() -> None:
    assert timeline((0.5, text("a"))).outcome(error="connection reset").error == "connection reset"


@pytest.mark.parametrize("content", [b"data: no json\n", b'data: {"choices": 3}\n'])
def test_another_api_is_noticed(content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        timeline((0.5, content))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"error": "not found"}, "not found"),
        ({"message": "busy"}, "busy"),
        ("plain", "plain"),
        ({"detail": 1}, "{'detail': 1}"),
    ],
)
def test_errors_of_several_servers_are_read(body: Any, message: str) -> None:
    assert error_message(body) == message
