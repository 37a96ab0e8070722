"""Request fields of the Responses API, except input and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from llmd.api.messages import Grammar
from llmd.chat.answers.thinking import thinking_variables
from llmd.grammar.json_schema import schema_grammar
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import MAX_TOKENS
from llmd.server.dialects.openai.fields import EFFORTS, MAX_TOP_LOGPROBS

SUMMARIES = ("auto", "concise", "detailed")
TRUNCATIONS = ("disabled", "auto")
MAX_METADATA = 16
LOGPROBS = "message.output_text.logprobs"
REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "background": ((False,), "a response is answered while its client waits"),
    "conversation": ((), "conversations are not kept"),
    "prompt": ((), "there are no prompts to refer to"),
    "moderation": ((), "answers are not moderated"),
    "use_beam_search": ((False,), "a response is drawn; chat and completions search"),
}


class Reasoning(Struct, frozen=True):
    """``reasoning``: what the template reads of it, and whether the answer gives its text as a summary."""

    effort: str | None
    summary: str | None
    ignored: tuple[str, ...]

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the template; the effort ``none`` turns thinking off."""
        return thinking_variables(effort=self.effort)

    def echo(self) -> dict[str, Any]:
        """The field as the response repeats it."""
        return {"effort": self.effort, "summary": self.summary}


class TextForm(Struct, frozen=True):
    """``text``: the form that an answer must have, as it was sent and as a grammar."""

    form: dict[str, Any]
    grammar: Grammar | None
    ignored: tuple[str, ...]

    def echo(self) -> dict[str, Any]:
        """The field as the response repeats it."""
        return {"format": self.form}


def read_text(fields: RequestFields) -> TextForm:
    """``text.format``, by default any text."""
    text = fields.nested("text")
    form = text.nested("format")
    kind = form.text("type")
    match kind:
        case None | "text":
            return TextForm({"type": "text"}, None, text.ignored + form.ignored)
        case "json_object":
            return TextForm({"type": kind}, Grammar("json_object"), text.ignored + form.ignored)
        case "json_schema":
            name, schema, strict = form.text("name"), form.value("schema"), form.boolean("strict")
            if not isinstance(schema, dict):
                raise form.invalid("schema", "a JSON schema")
            sent = {"type": kind, "name": name or "", "schema": schema, "strict": strict}
            described = {"description": form.text("description")}
            grammar = schema_grammar(schema, strict=strict)
            return TextForm(sent | described, grammar, text.ignored + form.ignored)
        case _:
            raise form.invalid("type", "text, json_object or json_schema")


def read_reasoning(fields: RequestFields) -> Reasoning:
    """``reasoning``; ``generate_summary`` is an older name of its summary."""
    nested = fields.nested("reasoning")
    older = _one_of(nested, "generate_summary", SUMMARIES)
    summary = _one_of(nested, "summary", SUMMARIES) or older
    return Reasoning(_one_of(nested, "effort", EFFORTS), summary, nested.ignored)


def read_max_tokens(fields: RequestFields) -> int | None:
    """``max_output_tokens``; none is the end of the window."""
    return fields.integer("max_output_tokens", 0, MAX_TOKENS)


def read_max_tool_calls(fields: RequestFields) -> int | None:
    """Read ``max_tool_calls``, which limits calls of built-in tools; llmd has no built-in tools."""
    return fields.integer("max_tool_calls", 0, MAX_TOKENS)


def read_logprobs(fields: RequestFields) -> int | None:
    """How many alternatives each token comes with; None: no logprobs.
    ``include`` may ask for those of tokens alone.
    """
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    wanted = fields.value("include") or []
    if not isinstance(wanted, list):
        raise fields.invalid("include", "a list")
    return (top or 0) if top or LOGPROBS in wanted else None


def read_truncation(fields: RequestFields) -> str:
    """Whether a prompt that is too long may be cut."""
    return _one_of(fields, "truncation", TRUNCATIONS) or "disabled"


def read_metadata(fields: RequestFields) -> dict[str, str]:
    """Texts by name, which the response repeats."""
    metadata = fields.value("metadata") or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise fields.invalid("metadata", "an object of texts")
    if len(metadata) > MAX_METADATA:
        raise fields.invalid("metadata", f"an object of at most {MAX_METADATA} texts")
    return metadata


def _one_of(fields: RequestFields, name: str, known: tuple[str, ...]) -> str | None:
    value = fields.text(name)
    if value is not None and value not in known:
        raise fields.invalid(name, f"one of {', '.join(known)}")
    return value
