"""Bodies of Ollama's routes, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from llmd.requests.model_fields import KeepAlive

Options = Mapping[str, Any]


class ModelName(TypedDict, total=False):
    """The model of a request."""

    model: str | None
    """The name of the model."""
    name: str | None
    """The older name of model."""


class AnswerFields(TypedDict, total=False):
    """What chats and generations share."""

    stream: bool | None
    """False: send the whole answer at once."""
    options: Options | None
    """The sampling fields under Ollama's names, num_predict, num_ctx, num_keep and stop."""
    think: bool | Literal["low", "medium", "high", "max"] | None
    """Whether, or how much, the model reasons."""
    format: str | Mapping[str, Any] | None
    """json, or a JSON schema that the answer follows."""
    truncate: bool | None
    """Cut a prompt that is too long."""
    logprobs: bool | None
    """Return the log probability of each token."""
    top_logprobs: int | None
    """Return this many alternatives with each token."""


class ChatFields(TypedDict, total=False):
    """What only chats have."""

    messages: Sequence[Mapping[str, Any]] | None
    """The conversation; empty: load or unload the model."""
    tools: Sequence[Mapping[str, Any]] | None
    """Tools that the model may call."""


class GenerateFields(TypedDict, total=False):
    """What only generations have."""

    prompt: str | None
    """The prompt; empty: load or unload the model."""
    suffix: str | None
    """The text after the answer, if the model has tokens for it."""
    system: str | None
    """The system message."""
    template: str | None
    """A chat template in Jinja, instead of the model's own."""
    raw: bool | None
    """Send the prompt without a template."""
    images: Sequence[str] | None
    """Refused unless it is empty: models read only text."""
    context: Sequence[int] | None
    """The context of an earlier answer, which this one continues."""


class EmbedFields(TypedDict, total=False):
    """What both routes of embeddings share."""

    truncate: bool | None
    """False: refuse a text that is too long."""
    options: Options | None
    """num_ctx: the most tokens of a text."""


class InputFields(TypedDict, total=False):
    """What only the newer route has."""

    input: str | Sequence[str] | None
    """A text or a list of texts; empty: load the model."""
    dimensions: int | None
    """Return only this many of the first numbers of each vector, if the model allows it."""


class OnePrompt(TypedDict, total=False):
    """What only the older route has."""

    prompt: str | None
    """A text; empty: load the model."""


class Progress(TypedDict, total=False):
    """How progress is reported."""

    stream: bool | None
    """False: send only the last line."""


class CreateFields(TypedDict, total=False):
    """What a new model changes."""

    system: str | None
    """The system message."""
    template: str | None
    """A chat template in Jinja."""
    messages: Sequence[Mapping[str, Any]] | None
    """Messages before every conversation."""
    parameters: Options | None
    """Options that apply unless a request sets them."""
    license: str | Sequence[str] | None
    """Texts of licences."""


Source = TypedDict(  # `from` is a word of Python
    "Source", {"from": Annotated[str, Meta(description="The model that the new one is derived from.")]}
)


class CopyFields(TypedDict):
    """The names of a copy."""

    source: str
    """The model to copy."""
    destination: str
    """The name of the copy."""


ANSWER = (ModelName, KeepAlive, AnswerFields)
CHAT = (*ANSWER, ChatFields)
GENERATE = (*ANSWER, GenerateFields)
EMBED = (ModelName, KeepAlive, EmbedFields, InputFields)
EMBED_ONE = (ModelName, KeepAlive, EmbedFields, OnePrompt)
NAMED = (ModelName,)
PULL = (ModelName, Progress)
CREATE = (ModelName, Progress, Source, CreateFields)
COPY = (CopyFields,)
