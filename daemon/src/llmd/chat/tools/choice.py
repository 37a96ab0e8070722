"""The tools of a request and which of them the answer may call; the same for every API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from llmd.api.errors import RequestError

# What OpenAI and Anthropic accept, plus the dots and colons with which tool servers prefix a name.
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}\Z")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


class ToolChoice(Struct, frozen=True):
    """Which tools an answer may or must call."""

    mode: Literal["auto", "none", "required"] = "auto"
    """``auto``: the model decides; ``required``: at least one call; ``none``: no call, no tools shown."""
    names: tuple[str, ...] | None = None
    """The tools that may be called; None: all. The prompt shows the others too."""
    parallel: bool = True
    """False: at most one call."""


def prepare_tools(tools: Sequence[Any], param: str = "tools") -> list[dict[str, Any]]:
    """Return tools as ``{"type": "function", "function": {…}}``, reduced to the keys that templates read.

    Raises:
        RequestError: a tool is not a function with a name and a schema, or two tools have the same name.
    """
    prepared = [_prepare(tool, f"{param}[{place}]") for place, tool in enumerate(tools)]
    names = Counter(tool["function"]["name"] for tool in prepared)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise RequestError(
            f"two tools are named {twice[0]}", param=param, hint="give each tool a unique name"
        )
    return prepared


def check_choice(choice: ToolChoice, tools: Sequence[Mapping[str, Any]], param: str = "tool_choice") -> None:
    """Check that tools, as `prepare_tools` returns them, can satisfy a choice.

    Raises:
        RequestError: it names an unknown tool, or requires a call but there are no tools.
    """
    known = [tool["function"]["name"] for tool in tools]
    unknown = [name for name in choice.names or () if name not in known]
    if unknown:
        raise RequestError(
            f"there is no tool {unknown[0]!r}; the tools are: {', '.join(known) or 'none'}",
            param=param,
            hint="use the name of one of the tools",
        )
    if choice.mode == "required" and (not known or choice.names == ()):
        raise RequestError("a tool call is required, but there are no tools", param=param, hint="send tools")


def _prepare(tool: Any, param: str) -> dict[str, Any]:
    kind = tool.get("type", "function") if isinstance(tool, Mapping) else None
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or kind != "function":
        raise RequestError(
            f"{param} is not a function",
            param=param,
            hint='send {"type": "function", "function": {"name": …, "parameters": {…}}}',
        )
    name, description = function.get("name"), function.get("description")
    parameters = function.get("parameters") or _NO_PARAMETERS
    if not isinstance(name, str) or not _NAME.match(name):
        raise RequestError(
            f"{name!r} is not a valid tool name",
            param=f"{param}.function.name",
            hint="use 1 to 128 letters, digits or characters of _.:/-",
        )
    if description is not None and not isinstance(description, str):
        raise RequestError(
            f"the description of {name} is a {type(description).__name__}, not a string",
            param=f"{param}.function.description",
            hint="send a string",
        )
    if not isinstance(parameters, Mapping):
        raise RequestError(
            f"the parameters of {name} are a {type(parameters).__name__}, not a JSON schema",
            param=f"{param}.function.parameters",
            hint="send a JSON schema that describes an object",
        )
    described = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, **described, "parameters": dict(parameters)}}
