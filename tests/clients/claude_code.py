"""What Claude Code sends: the fields, headers and sizes of its requests, with words of our own."""

from __future__ import annotations

from typing import Any

HEADERS = {
    "accept": "application/json",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14",
    "anthropic-dangerous-direct-browser-access": "true",
    "anthropic-version": "2023-06-01",
    "authorization": "Bearer none",
    "content-type": "application/json",
    "user-agent": "claude-cli/2.0.50 (external, cli)",
    "x-api-key": "none",
    "x-app": "cli",
    "x-stainless-helper-method": "stream",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
}
MODEL, SMALL_MODEL = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"
CACHED = {"cache_control": {"type": "ephemeral"}}
METADATA = {"user_id": "user_0123456789abcdef_account__session_00000000-0000-0000-0000-000000000000"}
TOOL_NAMES = (
    "Task", "Bash", "Glob", "Grep", "ExitPlanMode", "Read", "Edit", "Write", "NotebookEdit", "WebFetch",
    "TodoWrite", "WebSearch", "BashOutput", "KillShell", "Skill", "SlashCommand", "AskUserQuestion",
    "EnterPlanMode", "TaskOutput", "LSP", "mcp__files__search", "mcp__files__read_many",
)  # fmt: skip
_RULE = "Give whole paths, say what you expect to find, and stop when the answer is known. "


def tool(name: str) -> dict[str, Any]:
    """A tool with a description of the usual length."""
    properties = {"file_path": {"type": "string", "description": "A path."}, "limit": {"type": "number"}}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": ["file_path"],
        "additionalProperties": False,
    }
    return {"name": name, "description": f"{name} works on a path. " + _RULE * 6, "input_schema": schema}


TOOLS = [tool(name) for name in TOOL_NAMES]
SYSTEM = [
    {"type": "text", "text": "You are a program that works on code in a terminal.", **CACHED},
    {"type": "text", "text": "How to work:\n" + _RULE * 60, **CACHED},
]
ASKED = {
    "role": "user",
    "content": [
        {"type": "text", "text": "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>\n"},
        {"type": "text", "text": "What is in a.py?", **CACHED},
    ],
}


def quota() -> dict[str, Any]:
    """Its first request: whether it may ask at all."""
    messages = [{"role": "user", "content": "quota"}]
    return {"model": SMALL_MODEL, "max_tokens": 1, "messages": messages, "metadata": METADATA}


def main_request(*turns: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A request of the conversation, whole history included."""
    return {
        "model": MODEL,
        "messages": [ASKED, *turns],
        "system": SYSTEM,
        "tools": TOOLS,
        "metadata": METADATA,
        "max_tokens": 12000,
        "thinking": {"type": "enabled", "budget_tokens": 11999},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stream": True,
        **changed,
    }


def counting() -> dict[str, Any]:
    """How it learns what its tools cost."""
    return {"model": MODEL, "messages": [{"role": "user", "content": "foo"}], "tools": TOOLS}
