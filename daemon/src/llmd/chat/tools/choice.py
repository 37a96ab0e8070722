"""Tools that a request offers, and which of them the answer may call; the same for every dialect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from llmd.api.errors import RequestError

# What OpenAI and Anthropic take, and the dots and colons that servers of tools put between their name and the tool's.
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}\Z")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


class ToolChoice(Struct, frozen=True):
    """Which tools an answer calls.

    ``auto``: those that the model wants, or none; ``required``: at least one; ``none``: never one, and the prompt shows
    no tools. ``names`` are those that may be called (None: all), however many the prompt shows. Not ``parallel``: at
    most one call.
    """

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] | None = None
    parallel: bool = True


def prepare_tools(tools: Sequence[Any], param: str = "tools") -> list[dict[str, Any]]:
    """Tools in OpenAI's shape, ``{"type": "function", "function": {…}}``, with what templates read and nothing else.

    Raises:
        RequestError: one is no function with a name and a schema of its arguments, or two have one name.
    """
    prepared = [_prepare(tool, f"{param}[{place}]") for place, tool in enumerate(tools)]
    names = Counter(tool["function"]["name"] for tool in prepared)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise RequestError(
            f"two tools are named {twice[0]}", param=param, hint="give each tool a name of its own"
        )
    return prepared


def check_choice(choice: ToolChoice, tools: Sequence[Mapping[str, Any]], param: str = "tool_choice") -> None:
    """Refuse a choice that these tools, as `prepare_tools` returns them, cannot satisfy.

    Raises:
        RequestError: it names a tool that there is not, or demands a call where there are no tools.
    """
    known = [tool["function"]["name"] for tool in tools]
    unknown = [name for name in choice.names or () if name not in known]
    if unknown:
        raise RequestError(
            f"there is no tool {unknown[0]!r}; there are {', '.join(known) or 'none'}",
            param=param,
            hint="name one of tools",
        )
    if choice.mode == "required" and (not known or choice.names == ()):
        raise RequestError("a call is required, and there are no tools", param=param, hint="send tools")


def _prepare(tool: Any, param: str) -> dict[str, Any]:
    kind = tool.get("type", "function") if isinstance(tool, Mapping) else None
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or kind != "function":
        raise RequestError(
            f"{param} is no function",
            param=param,
            hint='send {"type": "function", "function": {"name": …, "parameters": {…}}}',
        )
    name, description = function.get("name"), function.get("description")
    parameters = function.get("parameters") or _NO_PARAMETERS
    if not isinstance(name, str) or not _NAME.match(name):
        raise RequestError(
            f"the name of a tool is {name!r}",
            param=f"{param}.function.name",
            hint="use 1 to 128 letters, digits and signs of _.:/-",
        )
    if description is not None and not isinstance(description, str):
        raise RequestError(
            f"the description of {name} is a {type(description).__name__}",
            param=f"{param}.function.description",
            hint="send a string",
        )
    if not isinstance(parameters, Mapping):
        raise RequestError(
            f"the parameters of {name} are a {type(parameters).__name__}",
            param=f"{param}.function.parameters",
            hint="send a JSON schema of an object",
        )
    described = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, **described, "parameters": dict(parameters)}}
