"""Request fields of Anthropic's messages beside the conversation."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.generation import EndChoice
from llmd.server.request_fields import RequestFields

DEFAULT_MAX_TOKENS = 4096
MAX_TOKENS = (1 << 31) - 1
MAX_STOPS = 64
THINKING = ("enabled", "adaptive", "between_tools", "disabled")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


class Thinking(Struct, frozen=True):
    """Variables of the template for reasoning, whether its text is shown, and which fields about it were ignored."""

    variables: dict[str, Any]
    is_shown: bool
    ignored: tuple[str, ...]


def read_sampling(fields: RequestFields) -> SamplingChoice:
    """How tokens are drawn; a temperature ends at 1 here."""
    top_p = fields.number("top_p", 0.0, 1.0)
    if top_p == 0.0:
        raise fields.invalid("top_p", "above 0 and at most 1")
    return SamplingChoice(
        temperature=fields.number("temperature", 0.0, 1.0),
        top_k=fields.integer("top_k", 0, MAX_TOKENS),
        top_p=top_p,
    )


def read_end(fields: RequestFields) -> EndChoice:
    """When an answer ends. The API demands ``max_tokens``; who forgets it gets the usual number."""
    limit = fields.integer("max_tokens", 0, MAX_TOKENS)
    return EndChoice(
        max_tokens=DEFAULT_MAX_TOKENS if limit is None else limit,
        strings=fields.strings("stop_sequences", MAX_STOPS),
    )


def refuse_tools(fields: RequestFields) -> None:
    """Tools are left out where the request wants none called, else refused."""
    choice = fields.nested("tool_choice").text("type")
    if choice == "none":
        fields.value("tools")
    else:
        fields.refuse("tools", (), "tools are not called")


def read_thinking(fields: RequestFields) -> Thinking:
    """``thinking`` and ``output_config.effort``. Without either the template decides."""
    thinking, output = fields.nested("thinking"), fields.nested("output_config")
    kind, effort = thinking.text("type"), output.text("effort")
    if kind is not None and kind not in THINKING:
        raise thinking.invalid("type", f"one of {', '.join(THINKING)}")
    if effort is not None and effort not in EFFORTS:
        raise output.invalid("effort", f"one of {', '.join(EFFORTS)}")
    output.refuse("format", (), "answers are not bound to a grammar")
    shown = thinking.text("display") != "omitted"
    variables: dict[str, Any] = {} if kind is None else {"enable_thinking": kind != "disabled"}
    variables |= {} if effort is None else {"reasoning_effort": effort}
    return Thinking(variables, shown, thinking.ignored + output.ignored)
