"""Tools as a request offers them, in the two kinds that a model can call: functions, and custom tools, whose input is text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

INPUT = "input"
"""The one parameter under which a model writes the input of a custom tool."""
FREE: Mapping[str, Any] = {"type": "text"}
"""The format of a custom tool whose input is any text."""


class Function(Struct, frozen=True):
    """A function. ``shown`` is the name that the model reads."""

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


class CustomTool(Struct, frozen=True):
    """A custom tool; models see a function of one text, which its grammar, if it has one, describes and does not bind."""

    shown: str
    name: str
    namespace: str | None
    description: str | None
    format: dict[str, Any]

    @property
    def is_free(self) -> bool:
        """Whether any text will do."""
        return self.format == FREE

    def prompt_tool(self) -> dict[str, Any]:
        """The tool as templates know functions."""
        text = {"type": "string", "description": self._described()}
        parameters = {
            "type": "object",
            "properties": {INPUT: text},
            "required": [INPUT],
            "additionalProperties": False,
        }
        function = {"name": self.shown, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def echo(self) -> dict[str, Any]:
        """The tool as the response repeats it."""
        return {
            "type": "custom",
            "name": self.name,
            "description": self.description,
            "format": self.format,
        }

    def _described(self) -> str:
        match self.format:
            case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
                return f"Text that follows this {syntax} grammar:\n{definition}"
        return "Any text."


Offered = Function | CustomTool
