"""Calls are read; everything else stays text."""

from __future__ import annotations

from llmd.api.parsing import CallFormat, Tool
from llmd.api.parts import CallArguments, CallStart, Text
from llmd_tool_parser_example.plugin import llmd_parsers

TOOLS = [Tool("weather", {"type": "object"})]
ANSWER = 'Well. <invoke>weather {"city": "Ulm"}</invoke>'


def test_reads_a_call_in_pieces_of_any_size() -> None:
    (parser,) = llmd_parsers()
    form = parser.load()
    assert isinstance(form, CallFormat)
    for size in range(1, len(ANSWER) + 1):
        reader = form.open(TOOLS)
        pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
        parts = [part for piece in pieces for part in reader.feed(piece)] + list(reader.finish())
        text = "".join(part.text for part in parts if isinstance(part, Text))
        assert (text, parts[-2:]) == (
            "Well. ",
            [CallStart(0, "weather"), CallArguments(0, '{"city": "Ulm"}')],
        )


def test_the_name_of_no_tool_is_text() -> None:
    (parser,) = llmd_parsers()
    form = parser.load()
    assert isinstance(form, CallFormat)
    assert form.open(TOOLS).feed("<invoke>other {}</invoke>") == [Text("<invoke>other {}</invoke>")]
