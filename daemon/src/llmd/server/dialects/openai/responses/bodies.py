"""Bodies of the routes of responses, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from llmd.requests.ending import EndFields
from llmd.requests.model_fields import ModelFields, NamedModel
from llmd.requests.sampling import SamplingOptions


class InputFields(TypedDict, total=False):
    """The conversation of a response."""

    input: Required[str | Sequence[Mapping[str, Any]]]
    """A text, or items: messages, reasoning, calls and their results."""
    instructions: str | None
    """A system message before the conversation; not part of the stored response."""
    previous_response_id: str | None
    """Continue this stored response."""
    reasoning: Mapping[str, Any] | None
    """effort: how much the model reasons; summary: return the reasoning as a summary."""
    tools: Sequence[Mapping[str, Any]] | None
    """Tools that the model may call: functions and custom tools, also in namespaces."""
    tool_choice: str | Mapping[str, Any] | None
    """Which tools the answer may or must call: none, auto, required, or one of them."""
    parallel_tool_calls: bool | None
    """False: at most one call."""


class ResponseFields(TypedDict, total=False):
    """What only a response has."""

    stream: bool | None
    """Send the response as server-sent events while it is generated."""
    store: bool | None
    """Keep the response in memory, for the same key."""
    include: Sequence[str] | None
    """message.output_text.logprobs: return log probabilities."""
    top_logprobs: int | None
    """Return this many alternatives with each token."""
    max_output_tokens: int | None
    """How many tokens an answer may have."""
    max_tool_calls: int | None
    """A limit of calls of hosted tools, which llmd does not have."""
    metadata: Mapping[str, str] | None
    """Values that the response repeats."""
    text: Mapping[str, Any] | None
    """format: text, json_object, or json_schema with a schema."""
    truncation: Literal["auto", "disabled"] | None
    """auto: drop the oldest messages of a conversation that is too long."""
    prompt_cache_key: str | None
    """Only repeated in the response."""
    safety_identifier: str | None
    """Only repeated in the response."""


class CompactFields(TypedDict, total=False):
    """A conversation to compact."""

    input: str | Sequence[Mapping[str, Any]] | None
    """A text, or items; optional with previous_response_id."""
    instructions: str | None
    """A system message for the compaction."""
    previous_response_id: str | None
    """Compact the conversation of this stored response, with the input after it."""


COMPACT = (ModelFields, CompactFields)
COUNT = (NamedModel, InputFields)
RESPONSE = (SamplingOptions, EndFields, ModelFields, InputFields, ResponseFields)
