"""Tools of the Responses API: functions and custom tools, optionally in a namespace.

They are in ``tools`` or in input items (``additional_tools``). Other kinds are skipped and reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from llmd.chat.tools.choice import ToolChoice, check_choice, prepare_tools
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.custom_tools import CALLED, read_format
from llmd.server.dialects.openai.responses.calls import Call, CustomCall, FunctionCall
from llmd.server.dialects.openai.responses.input_items import ADDITIONAL_TOOLS, invalid
from llmd.server.dialects.openai.responses.offered_tools import CustomTool, Function, Offered

MODES = ("none", "auto", "required")


class Tools(Struct, frozen=True):
    """The tools of a request."""

    offered: tuple[Offered, ...]
    """The tools that a model can call."""
    choice: ToolChoice
    """Which of them an answer may call."""
    sent_choice: Any
    """The choice as the client sent it."""
    ignored: tuple[str, ...]
    """Tools that were skipped."""

    def prompt_tools(self) -> list[dict[str, Any]]:
        """Return the tools in the form that templates expect."""
        return prepare_tools([tool.prompt_tool() for tool in self.offered])

    def bindings(self) -> dict[str, dict[str, Any]]:
        """Return the parameters that constrain calls, for tools whose prompt shows different ones."""
        custom = (tool for tool in self.offered if isinstance(tool, CustomTool))
        return {tool.shown: tool.input.binding_parameters() for tool in custom}

    def call(self, shown: str) -> Call:
        """Return a call for the name that the model wrote."""
        found = next((tool for tool in self.offered if tool.shown == shown), None)
        named = {"name": shown}
        if found is not None and found.namespace is not None:
            named = {"name": found.name, "namespace": found.namespace}
        return CustomCall(named) if isinstance(found, CustomTool) else FunctionCall(named)


class _Given(Struct, frozen=True):
    """A tool as the client sent it, its path in the request and its namespace."""

    tool: Any
    place: str
    namespace: str | None = None

    @property
    def kind(self) -> Any:
        return self.tool.get("type") if isinstance(self.tool, dict) else None

    @property
    def name(self) -> str | None:
        name = self.tool.get("name") if isinstance(self.tool, dict) else None
        return name if isinstance(name, str) else None


def read_tools(fields: RequestFields, items: Sequence[Any] = ()) -> Tools:
    """Parse ``tools``, tools in input items, ``tool_choice`` and ``parallel_tool_calls``.

    Raises:
        RequestError: a tool is malformed, or the choice names an unknown tool.
    """
    given = fields.value("tools")
    if given is not None and not isinstance(given, list):
        raise fields.invalid("tools", "a list of tools")
    found = [*_flat(given or [], "tools"), *_among(items)]
    names = Counter(one.name for one in found)
    offered: list[Offered] = []
    ignored: list[str] = []
    for one in found:
        tool = _tool(one, is_only=names[one.name] == 1)
        if tool is None:
            ignored.append(f"{one.place}.{one.kind}")
            continue
        offered.append(tool)
    sent = fields.value("tool_choice")
    parallel = fields.boolean("parallel_tool_calls", default=True)
    choice = _choice(sent, parallel=parallel)
    tools = Tools(tuple(offered), choice, "auto" if sent is None else sent, tuple(ignored))
    check_choice(choice, tools.prompt_tools())
    return tools


def _among(items: Sequence[Any]) -> Iterator[_Given]:
    """Yield the tools in ``additional_tools`` items."""
    for place, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == ADDITIONAL_TOOLS:
            if not isinstance(item.get("tools"), list):
                raise invalid(f"input[{place}].tools", "a list of tools")
            yield from _flat(item["tools"], f"input[{place}].tools")


def _flat(given: list[Any], at: str) -> Iterator[_Given]:
    """Yield each tool; a namespace's tools with the name of the namespace."""
    for place, tool in enumerate(given):
        outer = _Given(tool, f"{at}[{place}]")
        if outer.kind == "namespace" and isinstance(tool.get("tools"), list):
            for inner, member in enumerate(tool["tools"]):
                yield _Given(member, f"{outer.place}.tools[{inner}]", outer.name)
        else:
            yield outer


def _tool(given: _Given, *, is_only: bool) -> Offered | None:
    """Return the tool, or None if models cannot call its kind. ``is_only``: no other tool has its name."""
    if given.kind not in CALLED:
        return None
    name, tool = given.name, given.tool
    if name is None:
        raise invalid(f"{given.place}.name", "a string")
    shown = name if is_only or given.namespace is None else f"{given.namespace}.{name}"
    description = tool.get("description")
    if given.kind == "custom":
        form = tool.get("format") or {"type": "text"}
        read = read_format(form, f"{given.place}.format")
        return CustomTool(shown, name, given.namespace, description, form, read)
    return Function(shown, name, given.namespace, description, tool.get("parameters"), tool.get("strict"))


def _choice(sent: Any, *, parallel: bool) -> ToolChoice:
    match sent:
        case None:
            return ToolChoice(parallel=parallel)
        case "none" | "auto" | "required":
            return ToolChoice(sent, parallel=parallel)
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice("required", (name,), parallel=False)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(allowed)}:
            tools = [_Given(tool, "tool_choice.tools") for tool in allowed]
            names = tuple(one.name for one in tools if one.name and one.kind in CALLED)
            return ToolChoice(mode, names, parallel)
    raise invalid("tool_choice", f"one of {', '.join(MODES)}, a function, a custom tool, or allowed_tools")
