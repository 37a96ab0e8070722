"""Requests as Claude Code sends them, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent

from tests.clients import claude_code
from tests.clients.claude_code import CACHED
from tests.clients.sse import events
from tests.clients.strict import check
from tests.serving.http import Reply, send
from tests.serving.running import RunningDaemon
from tests.serving.script import answer_with

CALLS = (
    "<think>I must look.</think>I read the file.\n"
    '<tool_call>\n{"name": "Read", "arguments": {"file_path": "/src/a.py"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "TaskCreate", "arguments": {"file_path": "/src", "metadata": {"a": 1}}}\n</tool_call>'
)
MESSAGES = "/v1/messages?beta=true"


def post(daemon: RunningDaemon, path: str, body: dict[str, Any]) -> Reply:
    reply = send(daemon, "POST", path, body, claude_code.HEADERS)
    assert reply.status == 200, reply.content
    return reply


def streamed(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream, each of which the client's types have."""
    found = [event for event in events(reply.content) if event.name != "ping"]
    for event in found:
        check(RawMessageStreamEvent, event.data)
    return [json.loads(event.data) for event in found]


def blocks(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The content that a client puts together from the events."""
    content: list[dict[str, Any]] = []
    for event in found:
        match event:
            case {"type": "content_block_start", "content_block": block}:
                content.append({**block, "json": ""})
            case {"delta": {"type": "input_json_delta", "partial_json": text}}:
                content[-1]["json"] += text
            case {"delta": {"type": "text_delta" | "thinking_delta" | "signature_delta" as kind, **rest}}:
                name = kind.removesuffix("_delta")
                content[-1][name] += rest[name]
    for block in content:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
    return content


@pytest.mark.parametrize("path", ["/", "/api/hello"])
def test_finds_somebody_there(agents: RunningDaemon, path: str) -> None:
    assert send(agents, "HEAD", path).status == 200


def test_asks_whether_it_may(agents: RunningDaemon) -> None:
    body = post(agents, MESSAGES, claude_code.quota()).json
    assert (body["model"], body["stop_reason"]) == (claude_code.SMALL_MODEL, "max_tokens")


def test_counts_what_its_tools_cost(agents: RunningDaemon) -> None:
    counting = claude_code.counting()
    path = "/v1/messages/count_tokens?beta=true"
    with_tools = post(agents, path, counting).json["input_tokens"]
    bare = post(agents, path, {**counting, "tools": []}).json["input_tokens"]
    assert with_tools - bare > 10_000


def test_works_in_a_loop_of_calls_and_results(agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, CALLS)
    reply = post(agents, MESSAGES, claude_code.main_request())
    found = streamed(reply)
    thinking, text, read, create = blocks(found)
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "I must look.")
    assert text["text"].strip() == "I read the file."
    assert (read["name"], read["input"]) == ("Read", {"file_path": "/src/a.py"})
    assert (create["name"], create["input"]) == ("TaskCreate", {"file_path": "/src", "metadata": {"a": 1}})
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    assert found[-2]["usage"]["output_tokens_details"]["thinking_tokens"] > 0
    assert reply.headers["x-llmd-ignored"] == "context_management, metadata"

    results = [
        {"tool_use_id": read["id"], "type": "tool_result", "content": "1\tx = 1\n"},
        {"tool_use_id": create["id"], "type": "tool_result", "content": "no", "is_error": True, **CACHED},
    ]
    said = {"role": "assistant", "content": [thinking, text, read, create]}
    answer_with(monkeypatch, "<think></think>It sets x.")
    turns = (said, {"role": "user", "content": results})
    found = streamed(post(agents, MESSAGES, claude_code.main_request(*turns)))
    assert "".join(block.get("text", "") for block in blocks(found)) == "It sets x."
    assert found[-2]["delta"]["stop_reason"] == "end_turn"


def test_what_its_tools_take_can_be_enforced(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer_with(monkeypatch, "<think></think>Hello.")
    post(agents, MESSAGES, claude_code.main_request())
    assert "arguments_not_bound" not in caplog.messages


def test_a_small_model_has_a_budget_for_its_thinking(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, "<think>Hm.</think>Hello.")
    content = [claude_code.REMINDER, {"type": "text", "text": "And now?", **CACHED}]
    turns = ({"role": "assistant", "content": [{"type": "text", "text": "It sets x."}]},)
    found = streamed(
        post(agents, MESSAGES, claude_code.small_request(*turns, {"role": "user", "content": content}))
    )
    thinking, text = blocks(found)
    assert (thinking["thinking"], text["text"]) == ("Hm.", "Hello.")


def test_a_window_that_is_too_small_is_told_in_the_words_that_make_it_compact(agents: RunningDaemon) -> None:
    long = {"role": "user", "content": "x" * 40_000}
    reply = send(agents, "POST", MESSAGES, claude_code.main_request(long), claude_code.HEADERS)
    assert reply.status == 400
    assert reply.error["message"].startswith("prompt is too long: ")


@pytest.mark.timeout(150)
def test_its_prompt_of_20000_tokens_is_computed_once(agents: RunningDaemon) -> None:
    short = claude_code.main_request(max_tokens=2, stream=False)
    first, second = (post(agents, MESSAGES, short).json["usage"] for _ in range(2))
    tokens = first["input_tokens"] + first["cache_read_input_tokens"]
    assert tokens > 20_000
    assert second["cache_read_input_tokens"] > tokens - 32
    assert second["input_tokens"] == tokens - second["cache_read_input_tokens"]
