"""Tools in a chat request, in the current and in the legacy form (``functions``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from llmd.chat.tools.choice import ToolChoice, check_choice, prepare_tools
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.custom_tools import CALLED, InputFormat, read_format
from llmd.server.service import Service

_CHOICES = (
    'auto, none, required, {"type": "function", …}, {"type": "custom", …} or {"type": "allowed_tools", …}'
)


class ToolUse(Struct, frozen=True):
    """The tools of a request."""

    tools: tuple[dict[str, Any], ...] = ()
    choice: ToolChoice = ToolChoice()
    """Which tools an answer may call."""
    is_legacy: bool = False
    """Whether calls are returned as ``function_call``."""
    custom: Mapping[str, InputFormat] = {}
    """The input formats of custom tools, by name."""

    def bindings(self) -> dict[str, dict[str, Any]]:
        """Return the parameters that constrain calls, for tools whose prompt shows different ones."""
        return {name: form.binding_parameters() for name, form in self.custom.items()}


def read_tools(fields: RequestFields) -> ToolUse:
    """Parse all fields about tools.

    Raises:
        BadRequestError: a field has an unknown form.
        RequestError: a tool is malformed, or the choice names none of them.
    """
    tools, functions = fields.value("tools"), fields.value("functions")
    choice, old_choice = fields.value("tool_choice"), fields.value("function_call")
    parallel = fields.boolean("parallel_tool_calls", default=True)
    is_legacy = bool(functions) and not tools
    name = "functions" if is_legacy else "tools"
    listed = (functions if is_legacy else tools) or []
    if not isinstance(listed, list):
        raise fields.invalid(name, "a list")
    if is_legacy:
        listed = [{"type": "function", "function": function} for function in listed]
        parallel, choice = False, _of_old_form(fields, old_choice)
    elif old_choice not in (None, "none", "auto"):
        raise fields.invalid("function_call", "left out if there are no functions")
    custom = dict(_custom_tools(listed))
    prepared = tuple(prepare_tools([_as_function(tool, custom) for tool in listed], name))
    read = _choice(fields, choice, parallel=parallel)
    check_choice(read, prepared, "function_call" if is_legacy else "tool_choice")
    return ToolUse(prepared, read, is_legacy, custom)


async def read_tools_aside(fields: RequestFields, service: Service) -> ToolUse:
    """As `read_tools`, but in a thread if there are tools: converting a grammar may take 0.1 s."""
    return await service.in_thread(read_tools, fields) if "tools" in fields.names else read_tools(fields)


def _custom_tools(listed: list[Any]) -> Iterator[tuple[str, InputFormat]]:
    for place, tool in enumerate(listed):
        if isinstance(tool, dict) and tool.get("type") == "custom":
            custom, param = tool.get("custom"), f"tools[{place}].custom"
            if not isinstance(custom, dict) or not isinstance(custom.get("name"), str):
                raise BadRequestError(f"{param} must have a name", code="invalid_value", param=param)
            yield custom["name"], read_format(custom.get("format"), f"{param}.format")


def _as_function(tool: Any, custom: Mapping[str, InputFormat]) -> Any:
    """Return a custom tool as the function that the model sees; other tools unchanged."""
    if not isinstance(tool, dict) or tool.get("type") != "custom":
        return tool
    name = tool["custom"]["name"]
    function = {**tool["custom"], "parameters": custom[name].shown_parameters()}
    return {"type": "function", "function": function}


def _of_old_form(fields: RequestFields, choice: Any) -> Any:
    if choice in (None, "none", "auto"):
        return choice
    name = choice.get("name") if isinstance(choice, dict) else None
    if not isinstance(name, str):
        raise fields.invalid("function_call", 'auto, none or {"name": …}')
    return {"type": "function", "function": {"name": name}}


def _choice(fields: RequestFields, choice: Any, *, parallel: bool) -> ToolChoice:
    if choice in (None, "auto"):
        return ToolChoice("auto", parallel=parallel)
    if choice in ("none", "required"):
        return ToolChoice(choice, parallel=parallel)
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind in CALLED:
        return ToolChoice("required", (_named(fields, choice),), parallel)
    if kind == "allowed_tools":
        allowed = choice.get("allowed_tools")
        mode, tools = (
            (allowed.get("mode"), allowed.get("tools")) if isinstance(allowed, dict) else (None, None)
        )
        if mode in ("auto", "required") and isinstance(tools, list):
            return ToolChoice(mode, tuple(_named(fields, tool) for tool in tools), parallel)
    raise fields.invalid("tool_choice", _CHOICES)


def _named(fields: RequestFields, tool: Any) -> str:
    """Return the name of ``{"type": "function", "function": {"name": …}}`` or of a custom tool."""
    match tool:
        case {"type": "custom", "custom": {"name": str(name)}} | {"function": {"name": str(name)}}:
            return name
    raise fields.invalid("tool_choice", _CHOICES)
