"""Items of the output."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tests.serving.open_responses.content import OutputText, ReasoningText, SummaryText
from tests.serving.open_responses.shape import TypedShape

Status = Literal["in_progress", "completed", "incomplete"]


class Message(TypedShape, frozen=True, tag="message"):
    id: str
    status: Status
    role: Literal["assistant"]
    content: list[OutputText]


class Reasoning(TypedShape, frozen=True, tag="reasoning"):
    """``status`` is OpenAI's own."""

    id: str
    status: Status
    summary: list[SummaryText]
    content: list[ReasoningText]


class FunctionCall(TypedShape, frozen=True, tag="function_call"):
    """``namespace``, of a tool that has one, is OpenAI's own."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: Status
    namespace: str | UnsetType = UNSET


class CustomToolCall(TypedShape, frozen=True, tag="custom_tool_call"):
    """OpenAI's own: a call of a custom tool, which only a request that offers one can get."""

    id: str
    call_id: str
    name: str
    input: str
    namespace: str | UnsetType = UNSET


Item = Message | Reasoning | FunctionCall | CustomToolCall
