"""The tools of a request that a model can call: functions, and custom tools, whose input is text."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.server.dialects.openai.custom_tools import InputFormat


class Function(Struct, frozen=True):
    shown: str
    """The name that the model sees."""
    name: str
    namespace: str | None
    description: str | None
    parameters: Any
    strict: bool | None

    def prompt_tool(self) -> dict[str, Any]:
        """Return the function in the form that templates expect."""
        function = {"name": self.shown, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def echo(self) -> dict[str, Any]:
        """Return the function as the response repeats it."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
        }


class CustomTool(Struct, frozen=True):
    """A custom tool."""

    shown: str
    """The name that the model sees."""
    name: str
    namespace: str | None
    description: str | None
    format: dict[str, Any]
    """The format as the client sent it."""
    input: InputFormat = InputFormat()
    """The parsed format."""

    def prompt_tool(self) -> dict[str, Any]:
        """Return the tool as a function in the form that templates expect."""
        parameters = self.input.shown_parameters()
        function = {"name": self.shown, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def echo(self) -> dict[str, Any]:
        """Return the tool as the response repeats it."""
        return {
            "type": "custom",
            "name": self.name,
            "description": self.description,
            "format": self.format,
        }


Offered = Function | CustomTool
