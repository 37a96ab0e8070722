from __future__ import annotations

from typing import Any

from tests.serving.http import chat, send
from tests.serving.running import MODEL, RunningDaemon

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def count(daemon: RunningDaemon, **fields: Any) -> dict[str, Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], **fields}
    found: dict[str, Any] = send(daemon, "POST", "/v1/chat/completions/input_tokens", body).json
    return found


def test_a_chat_is_counted_as_it_is_answered(daemon: RunningDaemon) -> None:
    usage = chat(daemon).json["usage"]
    assert count(daemon) == {"object": "response.input_tokens", "input_tokens": usage["prompt_tokens"]}


def test_tools_are_counted_too(daemon: RunningDaemon) -> None:
    assert count(daemon, tools=TOOLS)["input_tokens"] > count(daemon)["input_tokens"]
