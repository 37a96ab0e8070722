"""Requests as Codex sends them, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseStreamEvent

from tests.clients import codex
from tests.clients.sse import events
from tests.clients.strict import check
from tests.serving.http import Reply, send
from tests.serving.running import RunningDaemon
from tests.serving.script import answer_with


def post(daemon: RunningDaemon, body: dict[str, Any]) -> Reply:
    reply = send(daemon, "POST", "/v1/responses", body, codex.HEADERS)
    assert reply.status == 200, reply.content
    return reply


def streamed(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream, each of which the client's types have."""
    found = events(reply.content)
    for event in found:
        assert check(ResponseStreamEvent, event.data).type == event.name
    return [json.loads(event.data) for event in found]


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def done(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that Codex keeps: it takes each from the event that ends it."""
    return [event["item"] for event in found if event["type"] == "response.output_item.done"]


def test_lists_models(agents: RunningDaemon) -> None:
    assert send(agents, "GET", "/v1/models", headers=codex.HEADERS).json["data"]


def test_works_in_a_loop_of_calls_and_results(agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(
        monkeypatch, "<think>I must look.</think>" + call("shell", command=["cat", "a.py"], workdir="/src")
    )
    reply = post(agents, codex.request())
    found = streamed(reply)
    assert found[-1]["type"] == "response.completed"
    thought, shell = done(found)
    assert thought["summary"] == [{"type": "summary_text", "text": "I must look."}]
    assert (shell["type"], shell["name"], shell["status"]) == ("function_call", "shell", "completed")
    assert json.loads(shell["arguments"]) == {"command": ["cat", "a.py"], "workdir": "/src"}
    assert found[-1]["response"]["output"] == [thought, shell]
    assert found[-1]["response"]["model"] == codex.MODEL
    assert reply.headers["x-llmd-ignored"] == (
        "client_metadata, prompt_cache_key, tools%5B2%5D.local_shell, tools%5B3%5D.web_search, "
        "tools%5B4%5D.custom"
    )

    output = {"type": "function_call_output", "call_id": shell["call_id"], "output": "x = 1"}
    answer_with(monkeypatch, "<think></think>It sets x.")
    (message,) = done(streamed(post(agents, codex.request(thought, shell, output))))
    assert message["content"][0]["text"] == "It sets x."


def test_functions_of_a_namespace_are_called_with_it(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, "<think></think>" + call("search", query="x"))
    (found,) = done(streamed(post(agents, codex.request())))
    assert (found["name"], found["namespace"]) == ("search", "mcp__docs")
    output = {"type": "function_call_output", "call_id": found["call_id"], "output": "nothing"}
    assert streamed(post(agents, codex.request(found, output)))[-1]["type"] == "response.completed"


def test_items_of_other_models_turns_are_taken(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = {"type": "exec", "command": ["ls"], "timeout_ms": 1000}
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "local_shell_call", "call_id": "call_1", "status": "completed", "action": action},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
        codex.said("assistant", "Changed."),
        codex.said("user", "And now?"),
    ]
    answer_with(monkeypatch, "<think></think>Nothing.")
    reply = post(agents, codex.request(*items))
    assert streamed(reply)[-1]["type"] == "response.completed"
    assert "input%5B8%5D.web_search_call" in reply.headers["x-llmd-ignored"]
