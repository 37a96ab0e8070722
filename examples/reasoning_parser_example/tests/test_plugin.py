"""The parser is selected by the template, and has the marks."""

from __future__ import annotations

from llmd.api import ReasoningMarks
from llmd_reasoning_parser_example.plugin import llmd_parsers


def test_is_selected_by_its_mark() -> None:
    (parser,) = llmd_parsers()
    assert parser.matches("{{ '<ponder>' }}") > parser.matches("{{ messages }}") == 0
    assert parser.load() == ReasoningMarks("<ponder>", "</ponder>")
