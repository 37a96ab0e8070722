"""Calls in chat answers: of functions, of custom tools, and in the legacy form ``function_call``."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec import Struct

from llmd.server.dialects.openai.custom_input import InputReader, arguments_of, input_of


class CallForms(Struct, frozen=True):
    """How calls are written."""

    custom: frozenset[str] = frozenset()
    """The names of custom tools."""
    is_legacy: bool = False
    """Whether calls are written as ``function_call``, of which an answer has only one."""

    def whole(self, name: str, arguments: str) -> dict[str, Any]:
        """Return a whole call for a message."""
        if name in self.custom:
            return _call("custom", {"name": name, "input": input_of(arguments)})
        return _call("function", {"name": name, "arguments": arguments})


class CallDeltas:
    """The deltas of one answer's calls. Clients concatenate strings, so names and ids are sent only once."""

    def __init__(self, forms: CallForms) -> None:
        self._forms = forms
        self._arguments = ""
        self._custom: InputReader | None = None
        self._index = 0

    def start(self, index: int, name: str) -> dict[str, Any]:
        """Return the delta that begins a call. Send `rest` of the previous call first."""
        self._index, self._arguments, self._custom = index, "", None
        if self._forms.is_legacy:
            return {"function_call": {"name": name, "arguments": ""}}
        if name in self._forms.custom:
            self._custom = InputReader()
            return _at(index, _call("custom", {"name": name, "input": ""}))
        return _at(index, _call("function", {"name": name, "arguments": ""}))

    def more(self, index: int, arguments: str) -> dict[str, Any] | None:
        """Return the delta of further arguments; None if there is nothing to send yet."""
        if self._forms.is_legacy:
            return {"function_call": {"arguments": arguments}}
        if self._custom is None:
            return _at(index, {"function": {"arguments": arguments}})
        self._arguments += arguments
        return self._input(self._custom.feed(arguments))

    def rest(self) -> dict[str, Any] | None:
        """Return the delta of the last call's remaining input; None if there is none."""
        if self._custom is None:
            return None
        found, self._custom = self._custom.rest(self._arguments), None
        return self._input(found)

    def _input(self, text: str) -> dict[str, Any] | None:
        return _at(self._index, {"custom": {"input": text}}) if text else None


def with_functions(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its calls of custom tools as function calls, as the model knows them."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_as_function(call) for call in calls]}


def _as_function(call: Any) -> Any:
    match call:
        case {"type": "custom", "custom": {"name": str(name), "input": str(text)}}:
            kept = {key: value for key, value in call.items() if key != "custom"}
            return {**kept, "type": "function", "function": {"name": name, "arguments": arguments_of(text)}}
    return call


def _call(kind: str, what: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": kind, kind: what}


def _at(index: int, call: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **call}]}
