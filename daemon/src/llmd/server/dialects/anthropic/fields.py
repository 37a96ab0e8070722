"""Request fields of Anthropic's messages beside the conversation."""

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
    """Variables of the template for reasoning, whether its text is shown, how many tokens it may have at most, and what
    was ignored of ``thinking``.
    """

    variables: dict[str, Any]
    is_shown: bool
    budget: int | None
    ignored: tuple[str, ...]


class OutputConfig(Struct, frozen=True):
    """``output_config``: the effort of reasoning, what the answer must match, and what was ignored."""

    effort: str | None
    grammar: Grammar | None
    ignored: tuple[str, ...]


def read_anthropic_sampling(fields: RequestFields) -> SamplingChoice:
    """How tokens are drawn. A temperature is at most 1 here."""
    return read_sampling(fields, changed=CHANGED, without=READERS.keys() - {"temperature", "top_k", "top_p"})


def read_end(fields: RequestFields) -> EndChoice:
    """When an answer ends. The API demands ``max_tokens``; who forgets it gets the usual number."""
    limit = fields.integer("max_tokens", 0, MAX_TOKENS)
    return EndChoice(
        max_tokens=DEFAULT_MAX_TOKENS if limit is None else limit,
        strings=fields.strings("stop_sequences", MAX_STOPS),
    )


def read_output_config(fields: RequestFields) -> OutputConfig:
    """``output_config``; its format is a JSON schema."""
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
    """``thinking``. Where neither it nor an effort is given the template decides."""
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
