"""Requests as Codex sends them, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients import codex
from tests.clients.sse import events
from tests.clients.strict_responses import check_event
from tests.serving.http import Reply, send
from tests.serving.running import RunningDaemon
from tests.serving.script import answer_with

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n"


def post(daemon: RunningDaemon, body: dict[str, Any]) -> Reply:
    reply = send(daemon, "POST", "/v1/responses", body, codex.HEADERS)
    assert reply.status == 200, reply.content
    return reply


def streamed(reply: Reply) -> list[dict[str, Any]]:
    """The events of a stream, each of which the client's types have."""
    found = events(reply.content)
    for event in found:
        assert check_event(event.data).type == event.name
    return [json.loads(event.data) for event in found]


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def done(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that Codex keeps: it takes each from the event that ends it."""
    return [event["item"] for event in found if event["type"] == "response.output_item.done"]


def sent_back(item: dict[str, Any]) -> dict[str, Any]:
    """An item as Codex has it in its history."""
    return {**item, "encrypted_content": None} if item["type"] == "reasoning" else item


def output_of(item: dict[str, Any], output: Any) -> dict[str, Any]:
    """What a call gave."""
    return {"type": f"{item['type']}_output", "id": "o_1", "call_id": item["call_id"], "output": output}


def test_lists_models(agents: RunningDaemon) -> None:
    assert send(agents, "GET", "/v1/models", headers=codex.HEADERS).json["data"]


def test_works_in_a_loop_of_calls_and_results(agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = call("exec_command", cmd="cat a.py") + call("exec_command", cmd="wc -c a.py")
    answer_with(monkeypatch, "<think>I must look.</think>" + calls)
    reply = post(agents, codex.request())
    found = streamed(reply)
    assert found[-1]["type"] == "response.completed"
    thought, first, second = done(found)
    assert thought["summary"] == [{"type": "summary_text", "text": "I must look."}]
    assert (first["type"], first["name"], first["status"]) == ("function_call", "exec_command", "completed")
    assert [json.loads(one["arguments"])["cmd"] for one in (first, second)] == ["cat a.py", "wc -c a.py"]
    assert found[-1]["response"]["output"] == [thought, first, second]
    assert found[-1]["response"]["model"] == codex.UNKNOWN
    assert reply.headers["x-llmd-ignored"] == "client_metadata, prompt_cache_key, tools%5B5%5D.web_search"

    answer_with(monkeypatch, "<think></think>It sets x.")
    history = (thought, first, second, output_of(first, "x = 1"), output_of(second, "6 a.py"))
    (message,) = done(streamed(post(agents, codex.request(*map(sent_back, history)))))
    assert message["content"][0]["text"] == "It sets x."


def test_functions_of_a_namespace_are_called_with_it(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, "<think></think>" + call("spawn_agent", message="x"))
    (found,) = done(streamed(post(agents, codex.request())))
    assert (found["name"], found["namespace"]) == ("spawn_agent", "multi_agent_v1")
    result = output_of(found, "nothing")
    assert streamed(post(agents, codex.request(found, result)))[-1]["type"] == "response.completed"


def test_changes_files_by_a_custom_tool(agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, "<think></think>" + call("apply_patch", input=PATCH))
    reply = post(agents, codex.patching_request())
    (found,) = done(streamed(reply))
    assert (found["type"], found["name"], found["input"]) == ("custom_tool_call", "apply_patch", PATCH)
    assert reply.headers["x-llmd-ignored"] == (
        "client_metadata, prompt_cache_key, tools%5B4%5D.tool_search, tools%5B5%5D.web_search, text.verbosity"
    )
    answer_with(monkeypatch, "<think></think>Done.")
    history = (found, output_of(found, "Success."))
    (message,) = done(streamed(post(agents, codex.patching_request(*history))))
    assert message["content"][0]["text"] == "Done."


def test_tools_among_the_items_of_the_input_are_called(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "text(await tools.exec_command({cmd: 'cat a.py'}))"
    answer_with(monkeypatch, "<think>I must look.</think>" + call("exec", input=script))
    reply = post(agents, codex.newest_request())
    thought, found = done(streamed(reply))
    assert (found["type"], found["input"]) == ("custom_tool_call", script)
    assert (found["name"], found["namespace"]) == ("exec", "functions")
    assert "format" not in reply.headers["x-llmd-ignored"]
    answer_with(monkeypatch, "<think></think>It sets x.")
    parts = [{"type": "input_text", "text": text} for text in ("Done.\n", "x = 1\n")]
    history = (sent_back(thought), found, output_of(found, parts))
    (message,) = done(streamed(post(agents, codex.newest_request(*history))))
    assert message["content"][0]["text"] == "It sets x."


def test_items_of_other_models_turns_are_taken(
    agents: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = {"type": "exec", "command": ["ls"], "timeout_ms": 1000}
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "local_shell_call", "call_id": "call_1", "status": "completed", "action": action},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
        codex.said("assistant", "Changed."),
        codex.said("user", "And now?"),
    ]
    answer_with(monkeypatch, "<think></think>Nothing.")
    reply = post(agents, codex.request(*items))
    assert streamed(reply)[-1]["type"] == "response.completed"
    assert "input%5B7%5D.web_search_call" in reply.headers["x-llmd-ignored"]
