"""Tools in Anthropic requests. Those that run on Anthropic's servers are skipped and reported."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.chat.tools.choice import ToolChoice, check_choice, prepare_tools
from llmd.requests.fields import RequestFields


class Tools(Struct, frozen=True):
    """The tools of a request."""

    tools: tuple[dict[str, Any], ...]
    """The tools in the form that templates expect."""
    choice: ToolChoice
    """Which tools an answer may call."""
    ignored: tuple[str, ...]
    """Tools and fields that were skipped or ignored."""


def read_tools(fields: RequestFields) -> Tools:
    """Parse ``tools`` and ``tool_choice``.

    Raises:
        RequestError: a tool is malformed, or the choice names an unknown tool.
    """
    given = fields.value("tools")
    if given is not None and not isinstance(given, list):
        raise fields.invalid("tools", "a list of tools")
    skipped: list[str] = []
    own: list[dict[str, Any]] = []
    for place, tool in enumerate(given or []):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(tool, dict) and kind in (None, "custom"):
            own.append(_function(tool))
        else:
            skipped.append(f"tools.{place}.{kind}")
    choice = fields.nested("tool_choice")
    read = _choice(choice)
    tools = prepare_tools(own)
    check_choice(read, tools)
    return Tools(tuple(tools), read, (*skipped, *choice.ignored))


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool.get("name"), "parameters": tool.get("input_schema")}
    if tool.get("description") is not None:
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _choice(choice: RequestFields) -> ToolChoice:
    name = choice.text("name")
    parallel = not choice.boolean("disable_parallel_tool_use")
    match choice.text("type"):
        case None | "auto":
            return ToolChoice(parallel=parallel)
        case "none":
            return ToolChoice("none", parallel=parallel)
        case "any":
            return ToolChoice("required", parallel=parallel)
        case "tool" if name is not None:
            return ToolChoice("required", (name,), parallel)
        case "tool":
            raise choice.invalid("name", "the name of a tool")
        case _:
            raise choice.invalid("type", "auto, any, tool or none")
