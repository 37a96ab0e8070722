"""Calls of a response: the items that they are, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from llmd.server.dialects.openai.custom_input import InputReader, input_of

Entry = dict[str, Any]
EventPart = tuple[str, Entry]
"""An event's name, and its fields beside where it belongs."""


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


class CustomCall(Struct):
    """A call of a custom tool, whose input comes as a text in JSON."""

    named: Entry
    prefix: str = "ctc"
    reader: InputReader = field(default_factory=InputReader)

    def item(self, arguments: str, _status: str) -> Entry:
        """The item; of this kind the API knows no status."""
        return {"type": "custom_tool_call", "input": input_of(arguments), **self.named}

    def grew(self, text: str) -> Iterator[EventPart]:
        """The events of more input."""
        if new := self.reader.feed(text):
            yield "custom_tool_call_input.delta", {"delta": new}

    def closed(self, arguments: str) -> Iterator[EventPart]:
        """The events of the end."""
        if rest := self.reader.rest(arguments):
            yield "custom_tool_call_input.delta", {"delta": rest}
        yield "custom_tool_call_input.done", {"input": input_of(arguments)}


Call = FunctionCall | CustomCall
