"""How tools, calls and results stand in the guide's text:
the form of Hermes for calls, signatures for definitions.

A signature is a fourth as long as the JSON of a definition, and the guide's window is short. The chat
template (`guide.tokens`) writes the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Call = tuple[str, dict[str, Any]]


def told(functions: Iterable[dict[str, Any]]) -> str:
    """What the system message says of tools;
    a function has OpenAI's ``name``, ``description`` and ``parameters``.
    """
    return "\n".join(("Tools:", *map(signature, functions)))


def signature(function: dict[str, Any]) -> str:
    """``get_weather(city: string, unit?: celsius|fahrenheit): Get the weather of a city``."""
    schema = function.get("parameters", {})
    members = ", ".join(
        f"{key}{'' if key in schema.get('required', ()) else '?'}: {_kind(member)}"
        for key, member in schema.get("properties", {}).items()
    )
    description = function.get("description", "").partition("\n")[0]
    return f"{function['name']}({members})" + (f": {description}" if description else "")


def calls_text(calls: Sequence[Call]) -> str:
    """An answer that calls tools."""
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"
        for name, arguments in calls
    )


def results_text(contents: Iterable[str]) -> str:
    """What the tools returned, as the next turn of the user."""
    return "\n".join(f"<tool_response>\n{content}\n</tool_response>" for content in contents)


def _kind(member: dict[str, Any]) -> str:
    kind = member.get("enum", member.get("type", "any"))
    return kind if isinstance(kind, str) else "|".join(map(str, kind))
