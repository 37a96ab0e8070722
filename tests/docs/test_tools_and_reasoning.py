"""docs/tools-and-reasoning.md names every built-in parser, and no other."""

from __future__ import annotations

from llmd.api.parsing import CallFormat, ReasoningMarks
from llmd.builtin.parsers.plugin import llmd_parsers
from tests.docs.page import CODE, DOCS, rows_with

PAGE = (DOCS / "tools-and-reasoning.md").read_text()
PARSERS = {parser.name: parser for parser in llmd_parsers()}


def test_every_parser_has_its_line() -> None:
    assert [name for row in rows_with(PAGE, "parser") for name in CODE.findall(row["parser"])] == list(
        PARSERS
    )


def test_calls_are_shown_as_they_begin() -> None:
    for row in rows_with(PAGE, "a call"):
        (name,) = CODE.findall(row["parser"])
        form = PARSERS[name].load()
        assert isinstance(form, CallFormat)
        assert (
            not form.marks or any(mark in row["a call"] for mark in form.marks) or form.grammar([]).at_start
        )


def test_marks_of_reasoning_are_those_that_are_looked_for() -> None:
    rows = rows_with(PAGE, "reasoning is between")
    assert len(rows) == sum(parser.reads == "reasoning" for parser in PARSERS.values())
    for row in rows:
        (name,) = CODE.findall(row["parser"])
        begin, end = (mark.replace(r"\|", "|") for mark in CODE.findall(row["reasoning is between"])[:2])
        marks = PARSERS[name].load()
        assert isinstance(marks, ReasoningMarks)
        assert (marks.begin, marks.end) == (begin, end)
