"""Calls of a response: the items that they are, and the events that tell of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from llmd.server.dialects.openai.responses.offered_tools import INPUT

Entry = dict[str, Any]
EventPart = tuple[str, Entry]
"""An event's name, and its fields beside where it belongs."""

_OPENING = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
_LONGEST_ESCAPE = len(r"\ud83d\ude0")


class FunctionCall(Struct, frozen=True):
    """A call of a function; ``named`` are its name and namespace."""

    named: Entry
    prefix: str = "fc"

    def item(self, arguments: str, status: str) -> Entry:
        """The item, with as many arguments as there are."""
        return {"status": status, "type": "function_call", "arguments": arguments, **self.named}

    def grew(self, text: str) -> Iterator[EventPart]:
        """The events of more arguments."""
        yield "function_call_arguments.delta", {"delta": text}

    def closed(self, arguments: str) -> Iterator[EventPart]:
        """The events of the end."""
        yield "function_call_arguments.done", {"arguments": arguments}


class CustomCall(Struct, frozen=True):
    """A call of a custom tool. Its input is told at once when it is whole, since it comes as a text in JSON."""

    named: Entry
    prefix: str = "ctc"

    def item(self, arguments: str, _status: str) -> Entry:
        """The item; of this kind the API knows no status."""
        return {"type": "custom_tool_call", "input": input_of(arguments), **self.named}

    def grew(self, _text: str) -> Iterator[EventPart]:
        """Nothing yet."""
        yield from ()

    def closed(self, arguments: str) -> Iterator[EventPart]:
        """The events of the end."""
        text = input_of(arguments)
        yield "custom_tool_call_input.delta", {"delta": text}
        yield "custom_tool_call_input.done", {"input": text}


Call = FunctionCall | CustomCall


def input_of(arguments: str) -> str:
    """The text that a model wrote for a custom tool: where a limit has cut the call, as much of it as came."""
    try:
        match msgspec.json.decode(arguments):
            case {"input": str(text)}:
                return text
    except msgspec.DecodeError:
        if opening := _OPENING.match(arguments):
            return _begun(arguments[opening.end() :])
    return arguments


def _begun(text: str) -> str:
    """A JSON string without its end, up to the last character that is whole."""
    for end in range(len(text), max(len(text) - _LONGEST_ESCAPE, 0) - 1, -1):
        try:
            decoded: str = msgspec.json.decode(f'"{text[:end]}"', type=str)
        except msgspec.DecodeError:
            continue
        return decoded
    return ""
