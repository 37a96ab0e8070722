"""A parser must leave unrelated templates alone, and read what its own grammar allows."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api.parsing import (
    CallFormat,
    CallGrammar,
    ChoiceTerm,
    ListTerm,
    ReasoningMarks,
    SchemaTerm,
    TextTerm,
)
from llmd.api.plugins import Parser
from llmd.builtin.parsers import hermes
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.parsers import TOOL, UnwritableError, check_parser, sample_answer
from llmd.testing.plugins.results import NotTested

CALL = 'get_weather {"city": "Ulm"}'


def grammar_of(*terms: object) -> CallFormat:
    made = CallGrammar([terms], trigger="<", opening="[", separator="|", closing="]>")  # type: ignore[list-item]
    return CallFormat(hermes.load().open, lambda _: made)


def problems(parser: Parser) -> list[str]:
    return [one.problem for one in check_parser(parser) if isinstance(one, CaseResult) and one.problem]


def test_a_sound_parser_passes() -> None:
    assert len(list(check_parser(Parser("made", "calls", lambda _: 0, hermes.load)))) == 4
    assert problems(Parser("made", "calls", lambda _: 0, hermes.load)) == []
    assert problems(Parser("made", "reasoning", lambda _: 0, lambda: ReasoningMarks("<a>", "</a>"))) == []


def test_a_parser_that_fits_everything_is_found() -> None:
    assert problems(Parser("made", "calls", lambda _: 3, hermes.load)) == ["returned 3, expected 0"]


def test_a_parser_of_the_other_kind_is_found() -> None:
    (problem,) = problems(Parser("made", "reasoning", lambda _: 0, hermes.load))
    assert problem == "load returned a CallFormat, not a ReasoningMarks"


def test_a_grammar_that_the_reader_does_not_read_is_found() -> None:
    other = msgspec.structs.replace(hermes.load(), grammar=grammar_of(CALL).grammar)
    found = problems(Parser("made", "calls", lambda _: 0, lambda: other))
    assert len(found) == 2
    assert "read [] in '<[get_weather" in found[0]


def test_samples_have_two_calls_of_every_kind_of_term() -> None:
    assert sample_answer(grammar_of(CALL)) == f"<[{CALL}|{CALL}]>"
    for term, written in (
        (SchemaTerm(TOOL.parameters), '{"city": "Ulm"}'),
        (SchemaTerm({"type": "string"}), '"Ulm"'),
        (TextTerm("</end>"), "Ulm</end>"),
        (ChoiceTerm((("a", "b"), ("c",))), "ab"),
        (ListTerm(("a",), ","), "a"),
    ):
        assert sample_answer(grammar_of(term)) == f"<[{written}|{written}]>"


def test_a_pattern_that_cannot_be_written_is_not_tested() -> None:
    form = grammar_of(TextTerm("x", "[0-9]+"))
    with pytest.raises(UnwritableError):
        sample_answer(form)
    assert any(
        isinstance(one, NotTested) for one in check_parser(Parser("m", "calls", lambda _: 0, lambda: form))
    )
