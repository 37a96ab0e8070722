"""Calls in a response: their output items and events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from llmd.server.dialects.openai.custom_input import InputReader, input_of

Entry = dict[str, Any]
EventPart = tuple[str, Entry]
"""An event's name, and its fields except the item's id and index."""


class FunctionCall(Struct, frozen=True):
    """A call of a function."""

    named: Entry
    """The name and namespace."""
    prefix: str = "fc"

    def item(self, arguments: str, status: str) -> Entry:
        """Return the item with the arguments so far."""
        return {"status": status, "type": "function_call", "arguments": arguments, **self.named}

    def grew(self, text: str) -> Iterator[EventPart]:
        """Yield the events of further arguments."""
        yield "function_call_arguments.delta", {"delta": text}

    def closed(self, arguments: str) -> Iterator[EventPart]:
        """Yield the events at the end of the call."""
        yield "function_call_arguments.done", {"arguments": arguments}


class CustomCall(Struct):
    """A call of a custom tool, whose input arrives as text in JSON."""

    named: Entry
    prefix: str = "ctc"
    reader: InputReader = field(default_factory=InputReader)

    def item(self, arguments: str, _status: str) -> Entry:
        """Return the item; in this API, custom tool calls have no status."""
        return {"type": "custom_tool_call", "input": input_of(arguments), **self.named}

    def grew(self, text: str) -> Iterator[EventPart]:
        """Yield the events of further input."""
        if new := self.reader.feed(text):
            yield "custom_tool_call_input.delta", {"delta": new}

    def closed(self, arguments: str) -> Iterator[EventPart]:
        """Yield the events at the end of the call."""
        if rest := self.reader.rest(arguments):
            yield "custom_tool_call_input.delta", {"delta": rest}
        yield "custom_tool_call_input.done", {"input": input_of(arguments)}


Call = FunctionCall | CustomCall
