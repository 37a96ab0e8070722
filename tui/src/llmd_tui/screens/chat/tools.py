"""Tools that a chat offers to the model, and calls of them that wait for a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.json_files import read_json
from llmd_tui.screens.chat.store.records import Call, Message, Settings

FORM = 'one entry is {"type": "function", "function": {"name": "…", "parameters": {…}}}'


class _Function(msgspec.Struct):
    name: str


class _Tool(msgspec.Struct):
    function: _Function


def with_tools(settings: Settings, file: str) -> Settings:
    """Return settings that offer the tools declared in a file; an empty name offers none.

    The file has a list of tools in OpenAI's form, or a request with such a list in ``tools``.

    Raises:
        LlmdError: the file cannot be read, or declares no tool.
    """
    if not file.strip():
        return msgspec.structs.replace(settings, tools_file="", tools=())
    path = Path(file.strip()).expanduser()
    declared = read_json(path)
    if isinstance(declared, dict):
        declared = declared.get("tools")
    try:
        named = msgspec.convert(declared, prepared(list[_Tool]))
    except msgspec.ValidationError as error:
        raise LlmdError(f"{path} is not a list of tools: {error}", hint=FORM) from error
    if not named:
        raise LlmdError(f"{path} declares no tool", hint=FORM)
    return msgspec.structs.replace(settings, tools_file=str(path), tools=tuple(declared))


def tool_names(settings: Settings) -> str:
    """Return the names of the tools, for people."""
    return ", ".join(str(tool["function"]["name"]) for tool in settings.tools)


def unanswered(path: Sequence[Message]) -> Sequence[Call]:
    """Return the calls of the last answer that have no result yet, in the order of the model."""
    results = 0
    while results < len(path) and path[-1 - results].role == "tool":
        results += 1
    if results == len(path):
        return ()
    answer = path[-1 - results]
    return answer.content.calls[results:] if answer.role == "assistant" and not answer.content.ending else ()


def waiting_words(calls: Sequence[Call]) -> str:
    """Say which result is wanted next; empty if none is."""
    if not calls:
        return ""
    more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
    return f"The model called {calls[0].name}{more}: /result sends what it returned"


def as_request(call: Call) -> dict[str, Any]:
    """Return a call as a request repeats it."""
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
