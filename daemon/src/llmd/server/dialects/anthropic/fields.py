"""Request fields of Anthropic's messages API, except the conversation."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.api.messages import Grammar
from llmd.chat.answers.thinking import effort_budget, thinking_variables
from llmd.grammar.json_schema import schema_grammar
from llmd.requests.ending import EndChoice
from llmd.requests.fields import RequestFields
from llmd.requests.number import Number
from llmd.requests.sampling import MAX_TOKENS, READERS, SamplingChoice, read_sampling

DEFAULT_MAX_TOKENS = 4096
MAX_STOPS = 64
CHANGED = {
    "temperature": Number(0.0, 1.0),
    "top_k": Number(0, MAX_TOKENS, whole=True),
}
"""Fields that this API reads in another way."""
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


class Thinking(Struct, frozen=True):
    """The field ``thinking``."""

    variables: dict[str, Any]
    """Variables of the chat template that control reasoning."""
    is_shown: bool
    """Whether the answer contains the text of the reasoning."""
    budget: int | None
    """The most tokens of reasoning."""
    ignored: tuple[str, ...]
    """Names of nested fields that were not read."""


class OutputConfig(Struct, frozen=True):
    """The field ``output_config``."""

    effort: str | None
    """The effort of reasoning."""
    grammar: Grammar | None
    ignored: tuple[str, ...]
    """Names of nested fields that were not read."""


def read_anthropic_sampling(fields: RequestFields) -> SamplingChoice:
    """Read the sampling fields. Here, the temperature is at most 1."""
    return read_sampling(fields, changed=CHANGED, without=READERS.keys() - {"temperature", "top_k", "top_p"})


def read_end(fields: RequestFields) -> EndChoice:
    """Read when an answer ends. The API requires ``max_tokens``;
    if it is absent, `DEFAULT_MAX_TOKENS` applies.
    """
    limit = fields.integer("max_tokens", 0, MAX_TOKENS)
    return EndChoice(
        max_tokens=DEFAULT_MAX_TOKENS if limit is None else limit,
        strings=fields.strings("stop_sequences", MAX_STOPS),
    )


def read_output_config(fields: RequestFields) -> OutputConfig:
    """Read ``output_config``, whose format must be a JSON schema."""
    output = fields.nested("output_config")
    effort, form = output.text("effort"), output.nested("format")
    if effort is not None and effort not in EFFORTS:
        raise output.invalid("effort", f"one of {', '.join(EFFORTS)}")
    kind, schema = form.text("type"), form.value("schema")
    if kind is None:
        return OutputConfig(effort, None, output.ignored)
    if kind != "json_schema":
        raise form.invalid("type", "json_schema")
    if not isinstance(schema, dict):
        raise form.invalid("schema", "a JSON schema")
    return OutputConfig(effort, schema_grammar(schema), output.ignored + form.ignored)


def read_thinking(fields: RequestFields, effort: str | None) -> Thinking:
    """Read ``thinking``. If neither it nor an effort is given, the chat template decides."""
    thinking = fields.nested("thinking")
    kind = thinking.text("type")
    if kind is not None and kind not in THINKING:
        raise thinking.invalid("type", f"one of {', '.join(THINKING)}")
    shown = thinking.text("display") != "omitted"
    variables = thinking_variables(on=None if kind is None else kind != "disabled", effort=effort)
    budget = thinking.integer("budget_tokens", 0, MAX_TOKENS)
    if budget is None:
        budget = effort_budget(effort)
    return Thinking(variables, shown, budget, thinking.ignored)
