"""What a response repeats of its request."""

from __future__ import annotations

from typing import Any, Literal

from tests.serving.open_responses.shape import Shape, TypedShape


class FunctionTool(TypedShape, frozen=True, tag="function"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class CustomTool(TypedShape, frozen=True, tag="custom"):
    """OpenAI's own: a tool whose input is text."""

    name: str
    description: str | None
    format: dict[str, Any]


class FunctionChoice(TypedShape, frozen=True, tag="function"):
    name: str


class CustomChoice(TypedShape, frozen=True, tag="custom"):
    """OpenAI's own."""

    name: str


class AllowedTools(TypedShape, frozen=True, tag="allowed_tools"):
    mode: Literal["auto", "required"]
    tools: list[FunctionChoice | CustomChoice]


class AnyText(TypedShape, frozen=True, tag="text"):
    pass


class AnyJson(TypedShape, frozen=True, tag="json_object"):
    pass


class SchemaText(TypedShape, frozen=True, tag="json_schema"):
    """The specification has null for every ``schema``;
    OpenAI repeats the request's, and its clients' types require it.
    """

    name: str
    description: str | None
    schema: dict[str, Any]
    strict: bool


class TextSettings(Shape, frozen=True):
    format: AnyText | AnyJson | SchemaText


class ReasoningSettings(Shape, frozen=True):
    """The efforts ``minimal`` and ``max`` are OpenAI's own."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    summary: Literal["auto", "concise", "detailed"] | None


Tool = FunctionTool | CustomTool
ToolChoice = Literal["none", "auto", "required"] | FunctionChoice | CustomChoice | AllowedTools
