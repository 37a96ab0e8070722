"""What ``vllm bench serve`` 0.33 sends, and what it needs of the streams, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.sse import events
from tests.serving.http import send
from tests.serving.running import MODEL, RunningDaemon

NUM_TOKENS = 12
SHARED: dict[str, Any] = {
    "model": MODEL,
    "stream": True,
    "stream_options": {"include_usage": True},
    "ignore_eos": True,
}
COMPLETION = SHARED | {
    "prompt": "Hello",
    "repetition_penalty": 1.0,
    "max_tokens": NUM_TOKENS,
    "logprobs": None,
}
CHAT = SHARED | {
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    "max_completion_tokens": NUM_TOKENS,
}


def headers(number: int) -> dict[str, str]:
    return {"x-request-id": f"bench-63d86bb2-{number}", "user-agent": "Python/3.11 aiohttp/3.14.5"}


@pytest.mark.parametrize(("path", "body"), [("/v1/completions", COMPLETION), ("/v1/chat/completions", CHAT)])
def test_counts_the_tokens_of_a_stream_by_its_last_chunk(
    daemon: RunningDaemon, path: str, body: dict[str, Any]
) -> None:
    reply = send(daemon, "POST", path, body, headers(0))
    assert (reply.status, reply.headers.get("x-llmd-ignored")) == (200, None)
    assert reply.headers["x-request-id"] == "bench-63d86bb2-0"
    *chunks, last, done = [event.data for event in events(reply.content)]
    assert done == "[DONE]"
    # A chunk with choices is a token's time, the one without has the counts.
    assert all(json.loads(chunk)["choices"] for chunk in chunks)
    whole = json.loads(last)
    assert whole["choices"] == []
    assert whole["usage"]["completion_tokens"] == NUM_TOKENS


def test_counts_the_tokens_of_a_prompt_before_it_begins(daemon: RunningDaemon) -> None:
    body = {"model": MODEL, "prompt": "Hello", "add_special_tokens": False}
    found = send(daemon, "POST", "/tokenize", body, headers(0)).json
    assert (found["count"], found["tokens"]) == (5, [*b"Hello"])


def test_looks_for_the_counters_of_speculation_and_finds_none(daemon: RunningDaemon) -> None:
    reply = send(daemon, "GET", "/metrics")
    assert reply.status == 200
    assert b"vllm:num_requests_running" in reply.content
    assert b"vllm:spec_decode" not in reply.content
