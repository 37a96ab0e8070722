"""Bodies of Anthropic's routes, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict

from llmd.requests.model_fields import ModelFields, NamedModel
from llmd.requests.number import Number
from llmd.server.dialects.anthropic.fields import CHANGED

Blocks = Sequence[Mapping[str, Any]]


class Message(TypedDict):
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | Blocks


class PromptFields(TypedDict, total=False):
    """The conversation of a message."""

    messages: Required[Sequence[Message]]
    """The conversation. A last message of the assistant is continued."""
    system: str | Blocks | None
    """The system message."""
    tools: Sequence[Mapping[str, Any]] | None
    """Tools that the model may call; those of Anthropic's service are skipped."""
    tool_choice: Mapping[str, Any] | None
    """Which tools the answer may or must call: a type of auto, any, tool or none."""
    thinking: Mapping[str, Any] | None
    """Whether the model reasons, with how many tokens, and whether that is shown."""
    output_config: Mapping[str, Any] | None
    """effort: how much the model reasons; format: a JSON schema for the answer."""


class MessageFields(TypedDict, total=False):
    """What only an answer has."""

    max_tokens: int | None
    """How many tokens an answer may have; absent: 4096."""
    stop_sequences: Sequence[str] | None
    """Texts that end an answer."""
    stream: bool | None
    """Send the answer as server-sent events while it is generated."""
    temperature: Annotated[float | None, CHANGED["temperature"]]
    """Logits are divided by it; 0 takes the best token."""
    top_k: Annotated[int | None, CHANGED["top_k"]]
    """Keep this many best tokens."""
    top_p: Annotated[float | None, Number(0.0, 1.0, excludes_low=True)]
    """Keep the best tokens up to this sum of probabilities."""


COUNT = (NamedModel, PromptFields)
MESSAGE = (ModelFields, PromptFields, MessageFields)
