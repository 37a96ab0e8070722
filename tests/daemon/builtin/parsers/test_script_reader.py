from __future__ import annotations

from llmd.api.parts import CallArguments, CallStart, Text
from llmd.builtin.parsers.cursor import Cursor, Script
from llmd.builtin.parsers.script_reader import ScriptReader
from tests.daemon.builtin.parsers.readings import joined, run


def digits(cursor: Cursor, mark: str) -> Script[None]:
    """A call is ``(digit)``; its mark is its name."""
    yield from cursor.expect("(")
    digit = yield from cursor.read()
    yield from cursor.expect(")")
    cursor.begin_call(mark or "start")
    cursor.arguments(digit)


def test_calls_are_read_after_each_mark() -> None:
    parts = run(ScriptReader(["!", "?"], digits), ["a!(1) b?(2)"])
    assert joined(parts) == ["a", ("!", "1"), " b", ("?", "2")]


def test_what_is_no_call_after_all_is_text_and_later_calls_are_found() -> None:
    assert joined(run(ScriptReader(["!"], digits), ["a!(1 !(2)!"])) == ["a!(1", ("!", "2"), "!"]


def test_space_at_the_end_is_text_where_text_came_last() -> None:
    for answer, last in (("!(1) ", []), ("!(1) ! ", [" ! "]), ("!(1) x ", [" x "])):
        assert joined(run(ScriptReader(["!"], digits), list(answer))) == [("!", "1"), *last]


def test_answer_may_begin_with_calls_that_have_no_mark() -> None:
    assert joined(run(ScriptReader(["!"], digits, at_start=True), ["(1)!(2)"])) == [
        ("start", "1"),
        ("!", "2"),
    ]
    assert joined(run(ScriptReader(["!"], digits), ["(1)"])) == ["(1)"]


def test_parts_come_as_soon_as_they_are_known() -> None:
    reader = ScriptReader(["!"], digits)
    assert reader.feed("a") == [Text("a")]
    assert (reader.feed("!("), reader.held) == ([], 2)
    assert reader.feed("1)") == [CallStart(0, "!"), CallArguments(0, "1")]
    assert (reader.held, reader.finish()) == (0, [])


def test_empty_answer_has_no_parts() -> None:
    assert run(ScriptReader(["!"], digits, at_start=True), []) == []
