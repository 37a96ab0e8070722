"""What Claude Code 2.1 sends: the fields and headers of its requests, a third of their size,
with words of our own.
"""

from __future__ import annotations

from typing import Any

ID = "00000000-0000-0000-0000-000000000000"
HEADERS = {
    "accept": "application/json",
    "anthropic-beta": (
        "claude-code-20250219,context-1m-2025-08-07,interleaved-thinking-2025-05-14,"
        "thinking-token-count-2026-05-13,context-management-2025-06-27,prompt-caching-scope-2026-01-05,"
        "mid-conversation-system-2026-04-07,effort-2025-11-24"
    ),
    "anthropic-dangerous-direct-browser-access": "true",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "user-agent": "claude-cli/2.1.197 (external, sdk-cli)",
    "x-api-key": "none",
    "x-app": "cli",
    "x-claude-code-session-id": ID,
    "x-stainless-arch": "x64",
    "x-stainless-lang": "js",
    "x-stainless-os": "Linux",
    "x-stainless-package-version": "0.94.0",
    "x-stainless-retry-count": "0",
    "x-stainless-runtime": "node",
    "x-stainless-runtime-version": "v26.3.0",
    "x-stainless-timeout": "600",
}
MODEL, SMALL_MODEL = "claude-opus-4-8", "claude-haiku-4-5-20251001"
CACHED = {"cache_control": {"type": "ephemeral"}}
METADATA = {"user_id": f'{{"device_id":"0","account_uuid":"","session_id":"{ID}"}}'}
TOOL_NAMES = (
    "Agent", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree", "ExitWorktree",
    "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
_RULE = "Give whole paths, say what you expect to find, and stop when the answer is known. "


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool with a description of the usual length."""
    path = {"type": "string", "description": "A path."}
    limit = {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"file_path": path, "limit": limit, **properties},
        "required": ["file_path"],
        "additionalProperties": False,
    }
    return {"name": name, "description": f"{name} works on a path. " + _RULE * 5, "input_schema": schema}


ANY_OBJECT = {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {}}
STATUS = {"anyOf": [{"type": "string", "enum": ["pending", "done"]}, {"type": "string", "const": "deleted"}]}
TOOLS = [
    *map(tool, TOOL_NAMES),
    tool("TaskCreate", metadata=ANY_OBJECT),
    tool("TaskUpdate", metadata=ANY_OBJECT, status=STATUS),
]
SYSTEM = [
    {"type": "text", "text": "x-anthropic-billing-header: none"},
    {"type": "text", "text": "You are a program that works on code in a terminal.", **CACHED},
    {"type": "text", "text": "How to work:\n" + _RULE * 50, **CACHED},
]
REMINDER = {"type": "text", "text": "<system-reminder>\nIt is Sunday.\n</system-reminder>\n\n"}
ASKED = {"role": "user", "content": [REMINDER, {"type": "text", "text": "What is in a.py?", **CACHED}]}
AMONG = {"role": "system", "content": "Agents that there are: one for any task.\nSkills: none."}


def quota() -> dict[str, Any]:
    """What an interactive session asks first: whether it may ask at all."""
    messages = [{"role": "user", "content": "quota"}]
    return {"model": SMALL_MODEL, "max_tokens": 1, "messages": messages, "metadata": METADATA}


def main_request(*turns: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A request of the conversation, whole history included;
    a system message stands after the first question.
    """
    return {
        "model": MODEL,
        "messages": [ASKED, AMONG, *turns],
        "system": SYSTEM,
        "tools": TOOLS,
        "metadata": METADATA,
        "max_tokens": 64000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "stream": True,
        **changed,
    }


def small_request(*turns: dict[str, Any]) -> dict[str, Any]:
    """A request to a model that has a budget for thinking, and no effort."""
    thinking = {"type": "enabled", "budget_tokens": 31999}
    changed = main_request(*turns, model=SMALL_MODEL, max_tokens=32000, thinking=thinking)
    del changed["output_config"]
    return changed


def counting() -> dict[str, Any]:
    """How it learns what its tools cost."""
    return {"model": MODEL, "messages": [{"role": "user", "content": "foo"}], "tools": TOOLS}
