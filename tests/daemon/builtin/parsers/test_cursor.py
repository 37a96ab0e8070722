from __future__ import annotations

import re

import pytest

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Text
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script, T


def run(script: Script[T]) -> T | None:
    """Advance a script; return its result, or None if it waits."""
    try:
        next(script)
    except StopIteration as stopped:
        value: T = stopped.value
        return value
    return None


def parts_of(cursor: Cursor) -> list[AnswerPart]:
    return cursor.take()


def test_script_waits_until_it_can_tell_what_comes() -> None:
    cursor = Cursor()
    script = cursor.accept("<call>")
    for text in ("<", "ca", "ll"):
        cursor.push(text)
        assert run(script) is None
    cursor.push(">x")
    assert run(script) is True
    assert run(cursor.peek()) == "x"


def test_what_cannot_become_the_literal_is_known_at_once() -> None:
    cursor = Cursor()
    cursor.push("<cat")
    assert run(cursor.accept("<call>")) is False
    assert run(cursor.peek()) == "<"


def test_end_of_the_answer_ends_what_waits() -> None:
    cursor = Cursor()
    cursor.push("<ca", ended=True)
    assert run(cursor.accept("<call>")) is False
    assert run(cursor.run(re.compile("[<ac]*"))) == "<ca"
    assert run(cursor.read()) == ""
    with pytest.raises(MalformedError):
        run(cursor.until("x"))


def test_text_is_told_but_for_what_may_become_a_mark_and_the_space_before() -> None:
    cursor = Cursor()
    script = cursor.text_until(["<call>", "[call]"])
    cursor.push("one two \n<ca")
    assert run(script) is None
    assert (parts_of(cursor), cursor.held) == ([Text("one two")], 5)
    cursor.push("t> [")
    assert run(script) is None
    assert (parts_of(cursor), cursor.held) == ([Text(" \n<cat>")], 2)
    cursor.push("call] rest")
    assert run(script) == "[call]"
    assert parts_of(cursor) == []


def test_text_without_a_mark_is_told_whole() -> None:
    cursor = Cursor()
    cursor.push(" a <c ", ended=True)
    assert run(cursor.text_until(["<call>"])) == ""
    assert (parts_of(cursor), cursor.held) == ([Text(" a <c ")], 0)


def test_space_after_a_call_is_markup_unless_text_follows() -> None:
    for after, emitted in ((" \n", []), (" \nmore", [Text(" \nmore")])):
        cursor = Cursor()
        cursor.push(f"x{after}", ended=True)
        run(cursor.read())
        cursor.begin_call("now")
        run(cursor.text_until(["<call>"]))
        assert parts_of(cursor) == [CallStart(0, "now"), *emitted]


def test_first_of_several_literals_ends_what_is_read() -> None:
    cursor = Cursor()
    emitted: list[str] = []
    script = cursor.until("\n</p>", "</p>", tell=emitted.append)
    for text in ("a\n", "b\n</", "p>c"):
        cursor.push(text)
        done = run(script)
    assert (done, "".join(emitted)) == ("a\nb", "a\nb")
    assert run(cursor.peek()) == "c"


def test_arguments_are_told_as_they_are_read() -> None:
    cursor = Cursor()
    cursor.push('x{"a"')
    run(cursor.read())
    cursor.begin_call("f")
    script = cursor.arguments_from(cursor.until("}"))
    run(script)
    assert parts_of(cursor) == [CallStart(0, "f"), CallArguments(0, '{"a"')]
    cursor.push(": 1} ")
    run(script)
    assert (parts_of(cursor), cursor.held) == ([CallArguments(0, ": 1}")], 1)


def test_rejected_markup_is_text_and_what_follows_is_read_again() -> None:
    cursor = Cursor()
    cursor.push("a <call> b", ended=True)
    assert run(cursor.text_until(["<call>"])) == "<call>"
    begin = cursor.place
    run(cursor.until("b"))
    cursor.reject(begin)
    assert parts_of(cursor) == [Text("a <call>")]
    assert run(cursor.text_until(["<call>"])) == ""
    assert parts_of(cursor) == [Text(" b")]
