from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.api.parsing import CallFormat, ReasoningMarks
from llmd.api.plugins import Parser
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import AnswerFormats, ParserChoice, choose_formats

BUILT_IN = {parser.name: parser for parser in llmd_parsers()}
THINK = ReasoningMarks("<think>", "</think>")


def formats(template: str, *, calls: str = "auto", reasoning: str = "auto") -> AnswerFormats:
    return choose_formats(ParserChoice(BUILT_IN, calls, reasoning), [template])


def trigger(form: CallFormat | None) -> str | None:
    return None if form is None else form.grammar([]).trigger


def parser(
    name: str, matches: Callable[[str], int], load: Callable[[], Any], reads: Any = "reasoning"
) -> dict[str, Parser]:
    return {name: Parser(name, reads, matches, load)}


def fail(*_: Any) -> Any:
    raise RuntimeError("broken")


def test_template_decides() -> None:
    chosen = formats("{{ tools }}[TOOL_CALLS]<think></think>")
    assert (trigger(chosen.calls), chosen.reasoning, chosen.tools_go) == ("[TOOL_CALLS]", THINK, "template")


def test_template_without_calls_gets_the_form_that_most_models_know() -> None:
    chosen = formats("{{ messages }}")
    assert (trigger(chosen.calls), chosen.reasoning, chosen.tools_go) == ("<tool_call>", None, "text")


@pytest.mark.parametrize(
    ("template", "tools_go"),
    [
        ("{% for tool in tools %}", "template"),
        ("{%- if tools is not none %}", "template"),
        ("{% if message['tools'] %}", "system"),
        ('{% if message["tools"] and tools %}', "template"),
        ("{% if message.tools_used %}", "text"),
    ],
)
def test_where_tools_go_is_told_by_the_template(template: str, tools_go: str) -> None:
    assert formats(template).tools_go == tools_go


def test_parsers_are_chosen_by_name_or_left_out() -> None:
    chosen = formats("<tool_call>", calls="granite", reasoning="mistral_think")
    assert (trigger(chosen.calls), chosen.reasoning) == (
        "<|tool_call|>",
        ReasoningMarks("[THINK]", "[/THINK]"),
    )
    chosen = formats("<tool_call></think>", calls="none", reasoning="none")
    assert (chosen.calls, chosen.reasoning) == (None, None)


def test_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"tool_parser is think, but the only parsers are: .*hermes"):
        formats("", calls="think")
    with pytest.raises(ConfigError, match=r"reasoning_parser is x, but the only parsers are: .*think"):
        formats("", reasoning="x")


def test_highest_number_wins_then_the_first_name() -> None:
    marks = {name: ReasoningMarks(name, name) for name in "abc"}
    parsers = {
        name: parser(name, lambda _, n=number: n, lambda m=marks[name]: m)[name]  # type: ignore[misc]
        for name, number in (("a", 1), ("c", 2), ("b", 2))
    }
    assert choose_formats(ParserChoice(parsers), [""]).reasoning == marks["b"]


@pytest.mark.parametrize(
    "broken",
    [
        parser("a", fail, lambda: THINK),
        parser("a", lambda _: 9, fail),
        parser("a", lambda _: 9, lambda: "<think>"),
    ],
)
def test_parser_that_fails_is_left_out_and_logged(
    broken: dict[str, Parser], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert choose_formats(ParserChoice(broken), ["</think>"]).reasoning is None
    assert [record.message for record in caplog.records] == ["parser_failed"]
