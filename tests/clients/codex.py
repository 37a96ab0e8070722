"""What Codex sends: the exact fields of its requests, its items and tools, with words of our own."""

from __future__ import annotations

from typing import Any

HEADERS = {
    "accept": "text/event-stream",
    "authorization": "Bearer none",
    "content-type": "application/json",
    "openai-beta": "responses=experimental",
    "originator": "codex_cli_rs",
    "session_id": "00000000-0000-0000-0000-000000000000",
    "user-agent": "codex_cli_rs/0.60.0 (Debian 12; x86_64) xterm",
}
MODEL = "gpt-5-codex"


def function(name: str, **properties: Any) -> dict[str, Any]:
    """A function as Codex declares it."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "name": name,
        "description": f"{name}.",
        "strict": False,
        "parameters": schema,
    }


SHELL = function("shell", command={"type": "array", "items": {"type": "string"}}, workdir={"type": "string"})
TOOLS = [
    SHELL,
    function("update_plan", plan={"type": "array", "items": {"type": "object"}}),
    {"type": "local_shell"},
    {"type": "web_search", "external_web_access": False},
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Changes files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
    },
    {
        "type": "namespace",
        "name": "mcp__docs",
        "description": "Documents.",
        "tools": [function("search", query={"type": "string"})],
    },
]


def said(role: str, text: str) -> dict[str, Any]:
    """A message."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def request(*items: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A request of the conversation, whole history included; no field of Codex is left out or added."""
    return {
        "model": MODEL,
        "instructions": "You work on code in a terminal. Be short. " * 40,
        "input": [
            said("developer", "<permissions>You may read files.</permissions>"),
            said("user", "<environment_context>\n<cwd>/src</cwd>\n</environment_context>"),
            said("user", "What is in a.py?"),
            *items,
        ],
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "00000000-0000-0000-0000-000000000000",
        "client_metadata": {"x-codex-installation-id": "00000000-0000-0000-0000-000000000000"},
        **changed,
    }
