"""Calls in chat answers: of functions, of custom tools, and of functions as they were before there were tools."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec import Struct

from llmd.server.dialects.openai.custom_input import InputReader, arguments_of, input_of


class CallForms(Struct, frozen=True):
    """How calls are written: ``custom`` are the names of custom tools; ``is_legacy``: as ``function_call``, of which there is one."""

    custom: frozenset[str] = frozenset()
    is_legacy: bool = False

    def whole(self, name: str, arguments: str) -> dict[str, Any]:
        """A whole call, as the message has it."""
        if name in self.custom:
            return _call("custom", {"name": name, "input": input_of(arguments)})
        return _call("function", {"name": name, "arguments": arguments})


class CallDeltas:
    """The deltas of one answer's calls; clients join their strings, so that names and ids go out once."""

    def __init__(self, forms: CallForms) -> None:
        self._forms = forms
        self._arguments = ""
        self._custom: InputReader | None = None
        self._index = 0

    def start(self, index: int, name: str) -> dict[str, Any]:
        """The delta with which a call begins; what is left of the last one went out before, by `rest`."""
        self._index, self._arguments, self._custom = index, "", None
        if self._forms.is_legacy:
            return {"function_call": {"name": name, "arguments": ""}}
        if name in self._forms.custom:
            self._custom = InputReader()
            return _at(index, _call("custom", {"name": name, "input": ""}))
        return _at(index, _call("function", {"name": name, "arguments": ""}))

    def more(self, index: int, arguments: str) -> dict[str, Any] | None:
        """The delta of further arguments, None where they say nothing yet."""
        if self._forms.is_legacy:
            return {"function_call": {"arguments": arguments}}
        if self._custom is None:
            return _at(index, {"function": {"arguments": arguments}})
        self._arguments += arguments
        return self._input(self._custom.feed(arguments))

    def rest(self) -> dict[str, Any] | None:
        """The delta of what the last call's end tells, None where nothing is left."""
        if self._custom is None:
            return None
        found, self._custom = self._custom.rest(self._arguments), None
        return self._input(found)

    def _input(self, text: str) -> dict[str, Any] | None:
        return _at(self._index, {"custom": {"input": text}}) if text else None


def with_functions(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the history whose calls of custom tools are what the model knows: calls of functions of one text."""
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
