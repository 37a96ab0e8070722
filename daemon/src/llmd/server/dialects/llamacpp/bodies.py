"""Bodies of llama.cpp's routes, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from llmd.requests.model_fields import ModelFields, NamedModel
from llmd.requests.sampling import SamplingOptions
from llmd.server.dialects.llamacpp.fields import CHANGED

Texts = str | Sequence[str | int | Sequence[str | int]]


class AnswerFields(TypedDict, total=False):
    """What completions and infills share."""

    temperature: Annotated[float | None, CHANGED["temperature"]]
    """Logits are divided by it; 0 or less takes the best token."""
    top_p: Annotated[float | None, CHANGED["top_p"]]
    """Keep the best tokens up to this sum of probabilities."""
    seed: Annotated[int | None, CHANGED["seed"]]
    """The same seed draws the same tokens; -1: a random one."""
    logit_bias: Sequence[Sequence[Any]] | Mapping[str, float] | None
    """Pairs of a token id or text and what is added to its logit, or false to forbid it."""
    n_predict: int | None
    """How many tokens an answer may have; -1: the context window."""
    stop: str | Sequence[str] | None
    """Texts that end an answer."""
    ignore_eos: bool | None
    """The model's own stop tokens do not end an answer."""
    grammar: str | None
    """A grammar in GBNF that the answer follows."""
    json_schema: Mapping[str, Any] | None
    """A JSON schema that the answer follows."""
    n_probs: int | None
    """Return the probabilities of this many tokens at each place."""
    post_sampling_probs: bool | None
    """Return probabilities after all samplers."""
    return_tokens: bool | None
    """Return the token ids of the answer."""
    response_fields: Sequence[str] | None
    """The fields that the reply has, as paths with slashes; absent: all."""
    stream: bool | None
    """Send the answer as server-sent events while it is generated."""


class CompletionFields(TypedDict, total=False):
    """What only completions have."""

    prompt: Texts | None
    """A text, token ids, both mixed, or a list of them."""


class InfillFields(TypedDict, total=False):
    """What only infills have."""

    input_prefix: str | None
    """The text before the gap."""
    input_suffix: str | None
    """The text after the gap."""
    input_extra: Sequence[Mapping[str, str]] | None
    """Other files, each with filename and text."""
    prompt: str | None
    """The beginning of the text in the gap."""


class EmbeddingFields(TypedDict, total=False):
    """What embeddings have."""

    content: Texts | None
    """A text, token ids, both mixed, or a list of them."""
    input: Texts | None
    """OpenAI's name of content."""
    embd_normalize: int | None
    """-1: not at all; 0: by the largest number; 2: to length 1; else by this norm."""


class TokenizeFields(TypedDict, total=False):
    """A text or a conversation: ``content`` is llama.cpp's form, ``prompt`` and ``messages`` are vLLM's."""

    content: str | None
    """A text."""
    add_special: bool | None
    """Add the tokens that the tokenizer puts around a prompt."""
    parse_special: bool | None
    """False: special tokens in the text are text."""
    with_pieces: bool | None
    """Return each token with its text."""
    prompt: str | None
    """A text, in vLLM's form."""
    add_special_tokens: bool | None
    """vLLM's name of add_special, by default true."""
    return_token_strs: bool | None
    """Return the texts of the tokens, too."""


class ConversationFields(TypedDict, total=False):
    """A conversation that the chat template renders."""

    messages: Sequence[Mapping[str, Any]] | None
    """The conversation."""
    tools: Sequence[Mapping[str, Any]] | None
    """Tools that the model may call."""
    chat_template_kwargs: Mapping[str, Any] | None
    """Variables of the chat template."""
    add_generation_prompt: bool | None
    """Begin a new answer."""
    continue_final_message: bool | None
    """Continue the last message."""


class DetokenizeFields(TypedDict, total=False):
    """Tokens."""

    tokens: Sequence[int] | None
    """Token ids."""


ANSWER = (SamplingOptions, ModelFields, AnswerFields)
COMPLETION = (*ANSWER, CompletionFields)
INFILL = (*ANSWER, InfillFields)
EMBEDDING = (ModelFields, EmbeddingFields)
TOKENIZE = (NamedModel, TokenizeFields, ConversationFields)
DETOKENIZE = (NamedModel, DetokenizeFields)
TEMPLATE = (NamedModel, ConversationFields)
