"""Tools of the Responses API: flat functions, alone or in a namespace. Others are skipped, and said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from llmd.chat.tools.choice import ToolChoice, check_choice, prepare_tools
from llmd.server.dialects.openai.responses.input_items import invalid
from llmd.server.http.request_fields import RequestFields

MODES = ("none", "auto", "required")


class Function(Struct, frozen=True):
    """A function as the request has it. ``shown`` is the name that the model reads."""

    shown: str
    name: str
    namespace: str | None
    description: str | None
    parameters: Any
    strict: bool | None

    def prompt_tool(self) -> dict[str, Any]:
        """The function as templates know it."""
        function = {"name": self.shown, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def echo(self) -> dict[str, Any]:
        """The function as the response repeats it."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
        }


class Tools(Struct, frozen=True):
    """Functions, which of them an answer may call, that choice as it was sent, and what was skipped."""

    functions: tuple[Function, ...]
    choice: ToolChoice
    sent_choice: Any
    skipped: tuple[str, ...]

    def prompt_tools(self) -> list[dict[str, Any]]:
        """The functions as templates know them."""
        return prepare_tools([function.prompt_tool() for function in self.functions])

    def named(self, shown: str) -> dict[str, Any]:
        """Name and namespace of a call, by the name that the model wrote."""
        found = next((function for function in self.functions if function.shown == shown), None)
        if found is None or found.namespace is None:
            return {"name": shown}
        return {"name": found.name, "namespace": found.namespace}


def read_tools(fields: RequestFields) -> Tools:
    """``tools``, ``tool_choice`` and ``parallel_tool_calls``.

    Raises:
        RequestError: a function is malformed, or the choice names one that there is not.
    """
    given = fields.value("tools")
    if given is not None and not isinstance(given, list):
        raise fields.invalid("tools", "a list of tools")
    found = list(_flat(given or []))
    named = (tool.get("name") for _, tool in found if isinstance(tool, dict))
    names = Counter(name for name in named if isinstance(name, str))
    skipped: list[str] = []
    functions: list[Function] = []
    for (place, namespace), tool in found:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind == "function":
            functions.append(_function(tool, place, namespace, names))
        else:
            skipped.append(f"{place}.{kind}")
    sent = fields.value("tool_choice")
    parallel = fields.boolean("parallel_tool_calls", default=True)
    choice = _choice(sent, parallel=parallel)
    tools = Tools(tuple(functions), choice, "auto" if sent is None else sent, tuple(skipped))
    check_choice(choice, tools.prompt_tools())
    return tools


def _flat(given: list[Any]) -> Iterator[tuple[tuple[str, str | None], Any]]:
    """Each tool with its place and its namespace."""
    for place, tool in enumerate(given):
        if isinstance(tool, dict) and tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            name = tool.get("name")
            for inner, member in enumerate(tool["tools"]):
                yield (f"tools[{place}].tools[{inner}]", name if isinstance(name, str) else None), member
        else:
            yield (f"tools[{place}]", None), tool


def _function(tool: dict[str, Any], place: str, namespace: str | None, names: Counter[str]) -> Function:
    name = tool.get("name")
    if not isinstance(name, str):
        raise invalid(f"{place}.name", "a string")
    return Function(
        shown=name if names[name] == 1 or namespace is None else f"{namespace}.{name}",
        name=name,
        namespace=namespace,
        description=tool.get("description"),
        parameters=tool.get("parameters"),
        strict=tool.get("strict"),
    )


def _choice(sent: Any, *, parallel: bool) -> ToolChoice:
    match sent:
        case None:
            return ToolChoice(parallel=parallel)
        case "none" | "auto" | "required":
            return ToolChoice(sent, parallel=parallel)
        case {"type": "function", "name": str(name)}:
            return ToolChoice("required", (name,), parallel=False)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(allowed)}:
            functions = [
                tool for tool in allowed if isinstance(tool, dict) and tool.get("type") == "function"
            ]
            names = tuple(tool["name"] for tool in functions if isinstance(tool.get("name"), str))
            return ToolChoice(mode, names, parallel)
    raise invalid("tool_choice", f"one of {', '.join(MODES)}, a function, or allowed_tools")
