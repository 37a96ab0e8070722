"""Tools as a request offers them, in the two kinds that a model can call: functions, and custom tools, whose input is text."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.server.dialects.openai.custom_tools import InputFormat


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
    """A custom tool, with its format as it was sent and as it was read."""

    shown: str
    name: str
    namespace: str | None
    description: str | None
    format: dict[str, Any]
    input: InputFormat = InputFormat()

    def prompt_tool(self) -> dict[str, Any]:
        """The tool as templates know functions."""
        parameters = self.input.shown_parameters()
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


Offered = Function | CustomTool
