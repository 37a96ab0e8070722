"""Requests to Ollama's routes, and their lines."""

from __future__ import annotations

import json
from typing import Any

from tests.serving.http import Reply, send
from tests.serving.running import MODEL, RunningDaemon

GREEDY = {"temperature": 0, "num_predict": 8}


def ask_chat(daemon: RunningDaemon, content: str = "Hello", /, **fields: Any) -> Reply:
    """Ask the model one question, greedily and for few tokens unless ``options`` say otherwise;
    not streamed by default.
    """
    options = {**GREEDY, **fields.pop("options", {})}
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "stream": False}
    return send(daemon, "POST", "/api/chat", {**body, "options": options, **fields})


def generate(daemon: RunningDaemon, prompt: str = "Hello", /, **fields: Any) -> Reply:
    """Answer a prompt likewise."""
    options = {**GREEDY, **fields.pop("options", {})}
    body = {"model": MODEL, "prompt": prompt, "stream": False}
    return send(daemon, "POST", "/api/generate", {**body, "options": options, **fields})


def lines_of(reply: Reply) -> list[dict[str, Any]]:
    """The values of a stream."""
    return [json.loads(line) for line in reply.content.splitlines()]
