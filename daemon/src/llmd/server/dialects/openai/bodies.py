"""Bodies of OpenAI's routes, except those of responses, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from llmd.requests.ending import EndFields
from llmd.requests.model_fields import ModelFields, NamedModel
from llmd.requests.sampling import SamplingOptions

Objects = Sequence[Mapping[str, Any]]


class ChatMessage(TypedDict, total=False):
    """One message of a conversation."""

    role: Required[Literal["system", "developer", "user", "assistant", "tool", "function"]]
    content: str | Objects | None
    name: str | None
    tool_calls: Objects | None
    tool_call_id: str | None
    reasoning_content: str | None


class GrammarFields(TypedDict, total=False):
    """Fields that bind an answer to a format; at most one of them."""

    response_format: Mapping[str, Any] | None
    """OpenAI's form: a type of text, json_object or json_schema."""
    structured_outputs: Mapping[str, Any] | None
    """vLLM's form: json, json_object, regex, choice or grammar."""
    guided_json: Mapping[str, Any] | str | bool | None
    """A JSON schema, in vLLM's older form."""
    guided_regex: str | None
    """A regular expression, in vLLM's older form."""
    guided_choice: Sequence[str] | None
    """The texts that an answer may be, in vLLM's older form."""
    guided_grammar: str | None
    """A grammar in GBNF or Lark, in vLLM's older form."""
    grammar: str | None
    """A grammar in GBNF or Lark, in llama.cpp's form."""
    json_schema: Mapping[str, Any] | str | bool | None
    """A JSON schema, in llama.cpp's form: objects allow only declared properties."""


class AnswerFields(TypedDict, total=False):
    """What chats and completions share."""

    stream: bool | None
    """Send the answer as server-sent events while it is generated."""
    stream_options: Mapping[str, Any] | None
    """include_usage: the last event has the usage; continuous_usage_stats: every event has it."""
    max_tokens: int | None
    """How many tokens an answer may have."""
    max_completion_tokens: int | None
    """The newer name of max_tokens, which wins."""
    n: int | None
    """How many answers each prompt gets."""
    use_beam_search: bool | None
    """Search for the likeliest answers instead of sampling."""
    best_of: int | None
    """The number of beams; without a search, 1 or n."""
    length_penalty: float | None
    """The score of a beam is divided by its length to the power of this."""
    early_stopping: bool | Literal["never"] | None
    """When the search ends."""
    prompt_logprobs: int | bool | None
    """Return the log probabilities of the prompt, with this many alternatives; not streamed."""
    return_token_ids: bool | None
    """Return the token ids of prompt and answer."""
    skip_special_tokens: bool | None
    """False: show special tokens in the answer."""
    priority: int | None
    """Requests of a lower priority number run first."""
    cache_salt: str | None
    """Requests with different salts share no cached prefix."""


class PromptFields(TypedDict, total=False):
    """The conversation of a chat."""

    messages: Required[Sequence[ChatMessage]]
    """The conversation. A last message of the assistant is continued."""
    tools: Objects | None
    """Tools that the model may call: functions, and custom tools that take text."""
    tool_choice: str | Mapping[str, Any] | None
    """Which tools the answer may or must call: none, auto, required, or one of them."""
    parallel_tool_calls: bool | None
    """False: at most one call."""
    functions: Objects | None
    """The older form of tools."""
    function_call: str | Mapping[str, Any] | None
    """The older form of tool_choice."""
    add_generation_prompt: bool | None
    """Begin a new answer."""
    continue_final_message: bool | None
    """Continue the last message."""
    chat_template_kwargs: Mapping[str, Any] | None
    """Variables of the chat template."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    """How much the model reasons; none turns reasoning off."""
    reasoning_format: Literal["auto", "deepseek", "none"] | None
    """none: reasoning stays in the text of the answer."""
    thinking_token_budget: int | None
    """How many tokens the reasoning may have."""


class ChatFields(TypedDict, total=False):
    """What only chats have."""

    logprobs: bool | None
    """Return the log probability of each token."""
    top_logprobs: int | None
    """Return this many alternatives with each token."""


class CompletionFields(TypedDict, total=False):
    """What only completions have."""

    prompt: str | Sequence[str | int | Sequence[int]] | None
    """A text, token ids, or a list of either."""
    suffix: str | None
    """The text after the answer, if the model has tokens for it."""
    echo: bool | None
    """Return the prompt before the answer."""
    logprobs: int | None
    """Return the log probability of each token, with this many alternatives."""


class EmbeddingFields(TypedDict, total=False):
    """What embeddings have."""

    input: str | Sequence[str | int | Sequence[int]] | None
    """A text, token ids, or a list of either."""
    encoding_format: Literal["float", "base64"] | None
    """How numbers are written."""
    dimensions: int | None
    """Return only this many of the first numbers of each vector, if the model allows it."""
    prompt_name: str | None
    """The model's prompt that is put before every text."""


GENERATION = (SamplingOptions, EndFields, GrammarFields, AnswerFields, ModelFields)
CHAT = (*GENERATION, PromptFields, ChatFields)
CHAT_PROMPT = (NamedModel, PromptFields)
COMPLETION = (*GENERATION, CompletionFields)
EMBEDDING = (ModelFields, EmbeddingFields)
