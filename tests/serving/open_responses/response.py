"""The response: answered whole, and sent at the start and at the end of a stream."""

from __future__ import annotations

from typing import Literal

from tests.serving.open_responses.items import Item
from tests.serving.open_responses.settings import ReasoningSettings, TextSettings, Tool, ToolChoice
from tests.serving.open_responses.shape import Shape


class InputTokensDetails(Shape, frozen=True):
    """``cache_write_tokens`` is OpenAI's own."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(Shape, frozen=True):
    reasoning_tokens: int


class Usage(Shape, frozen=True):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class IncompleteDetails(Shape, frozen=True):
    reason: Literal["max_output_tokens"]


class ResponseError(Shape, frozen=True):
    code: str
    message: str


class Response(Shape, frozen=True):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    model: str
    output: list[Item]
    usage: Usage | None
    previous_response_id: str | None
    instructions: str | None
    tools: list[Tool]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    max_tool_calls: int | None
    max_output_tokens: int | None
    text: TextSettings
    reasoning: ReasoningSettings
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    truncation: Literal["auto", "disabled"]
    store: bool
    background: Literal[False]
    service_tier: Literal["default"]
    metadata: dict[str, str]
    safety_identifier: str | None
    prompt_cache_key: str | None
