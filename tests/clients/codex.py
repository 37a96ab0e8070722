"""What Codex 0.169 sends: the exact fields of its requests, items and tools, with our own texts.

The form of the tools depends on the model name: functions and a namespace for an unknown model, additional
custom tools for others, and all tools as one input item for the newest.
"""

from __future__ import annotations

from typing import Any

ID = "01a20000-0000-7000-8000-000000000000"
HEADERS = {
    "accept": "text/event-stream",
    "content-type": "application/json",
    "originator": "codex_exec",
    "session-id": ID,
    "thread-id": ID,
    "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)",
    "x-client-request-id": ID,
    "x-codex-beta-features": "remote_compaction_v2",
    "x-codex-turn-metadata": '{"request_kind":"turn","sandbox":"seccomp"}',
    "x-codex-window-id": f"{ID}:0",
}
UNKNOWN, PATCHING, NEWEST = "gpt-5-codex", "gpt-5.5", "gpt-6-sol"
TEXT, INTEGER = {"type": "string"}, {"type": "number"}


def function(name: str, **properties: Any) -> dict[str, Any]:
    """A function as Codex declares it."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties][:1],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "name": name,
        "description": f"{name}.",
        "strict": False,
        "parameters": schema,
    }


def custom(name: str, grammar: str) -> dict[str, Any]:
    """A custom tool as Codex declares it."""
    form = {"type": "grammar", "syntax": "lark", "definition": grammar}
    return {"type": "custom", "name": name, "description": f"{name}.", "format": form}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    """A namespace as Codex declares it."""
    return {"type": "namespace", "name": name, "description": f"{name}.", "tools": [*tools]}


EXEC = function("exec_command", cmd=TEXT, workdir=TEXT, yield_time_ms=INTEGER, login={"type": "boolean"})
PATCH = custom("apply_patch", 'start: "*** Begin Patch" /(.|\\n)+/')
SEARCHED = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": TEXT, "limit": INTEGER}, "required": ["query"]},
}
WEB = {"type": "web_search", "external_web_access": False}
FUNCTIONS = [EXEC, function("write_stdin", session_id=INTEGER, chars=TEXT), function("view_image", path=TEXT)]
AGENTS = namespace("multi_agent_v1", function("spawn_agent", message=TEXT), function("wait_agent", id=TEXT))
TOOLS = [*FUNCTIONS, AGENTS, function("get_goal"), WEB]
ADDITIONAL_TOOLS = {
    "type": "additional_tools",
    "id": f"at_{ID}",
    "role": "developer",
    "tools": [
        namespace("functions", custom("exec", "start: /(.|\\n)+/"), function("wait", cell_id=TEXT)),
        namespace("clock", function("sleep", duration_ms=INTEGER)),
    ],
}


def said(role: str, *texts: str) -> dict[str, Any]:
    """A message."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "id": f"msg_{ID}", "role": role, "content": content}


def request(*items: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A request of the conversation, whole history included; no field of Codex is left out or added."""
    return {
        "model": UNKNOWN,
        "stream": True,
        "input": [*_opening(), *items],
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": ID,
        "client_metadata": {
            **dict.fromkeys(("root_turn_id", "session_id", "thread_id", "turn_id"), ID),
            "x-codex-installation-id": ID,
            "x-codex-turn-metadata": HEADERS["x-codex-turn-metadata"],
            "x-codex-window-id": f"{ID}:0",
        },
        **changed,
    }


def patching_request(*items: dict[str, Any]) -> dict[str, Any]:
    """A request to a model that changes files by a custom tool."""
    changed = {"reasoning": {"effort": "medium"}, "text": {"verbosity": "low"}}
    tools = [*FUNCTIONS, PATCH, SEARCHED, WEB]
    return request(*items, model=PATCHING, tools=tools, **changed)


def newest_request(*items: dict[str, Any]) -> dict[str, Any]:
    """A request to a model whose tools are an item of the input."""
    reasoning = {"effort": "medium", "context": "all_turns"}
    changed = request(model=NEWEST, parallel_tool_calls=False, reasoning=reasoning, text={"verbosity": "low"})
    del changed["tools"]
    return {**changed, "input": [ADDITIONAL_TOOLS, *_opening(), *items]}


def _opening() -> list[dict[str, Any]]:
    return [
        said("developer", "You work on code in a terminal. Be short. " * 40),
        said("developer", "<skills>None.</skills>", "<permissions>You may read files.</permissions>"),
        said("user", "<environment_context>\n<cwd>/src</cwd>\n</environment_context>"),
        said("user", "What is in a.py?"),
    ]
