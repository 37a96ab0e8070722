"""An answer whose parser raises an error goes on as text, whole, and later answers are not parsed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmd.api.parsing import CallFormat, CallGrammar, CallReader
from llmd.api.parts import AnswerPart, Text
from llmd.chat.answers.guarded_calls import guarded


class Shaky:
    """Holds back the last two characters of its text, and raises at the end or at a digit that it is fed."""

    def __init__(self, *, fails_at_end: bool = False) -> None:
        self._fails_at_end = fails_at_end
        self._text = ""

    @property
    def held(self) -> int:
        return len(self._text)

    def feed(self, text: str) -> Sequence[AnswerPart]:
        if any(letter.isdigit() for letter in text):
            raise ZeroDivisionError("a digit")
        text = self._text + text
        self._text = text[-2:]
        return [Text(text[:-2])] if text[:-2] else []

    def finish(self) -> Sequence[AnswerPart]:
        if self._fails_at_end:
            raise ZeroDivisionError("the end")
        return [Text(self._text)] if self._text else []


def read(reader: CallReader, *pieces: str) -> str:
    """Read an answer; all its text, and what is held, add up at each piece."""
    shown = ""
    for number, piece in enumerate(pieces):
        shown += "".join(part.text for part in reader.feed(piece) if isinstance(part, Text))
        assert len(shown) + reader.held == len("".join(pieces[: number + 1]))
    return shown + "".join(part.text for part in reader.finish() if isinstance(part, Text))


def form_of(reader: CallReader) -> CallFormat:
    return CallFormat(
        lambda _tools: reader, lambda _tools: CallGrammar([], trigger="", separator=""), ("<c>",)
    )


@pytest.mark.parametrize(
    ("reader", "pieces", "failures"),
    [
        (Shaky(), ("abc", "def", "gh"), 0),
        (Shaky(), ("abc", "d1f", "gh", "2"), 1),
        (Shaky(fails_at_end=True), ("abc", "d"), 1),
    ],
)
def test_no_text_is_lost(reader: Shaky, pieces: tuple[str, ...], failures: int) -> None:
    failed: list[str] = []
    form = guarded(form_of(reader), "shaky", lambda parser, error: failed.append(f"{parser}: {error}"))
    assert form.marks == ("<c>",)
    assert read(form.open([]), *pieces) == "".join(pieces)
    assert len(failed) == failures


def test_after_an_error_the_parser_is_not_asked_again() -> None:
    opened: list[Shaky] = []

    def open_reader(_tools: object) -> CallReader:
        opened.append(Shaky())
        return opened[-1]

    failed: list[str] = []
    form = CallFormat(open_reader, form_of(Shaky()).grammar)
    form = guarded(form, "shaky", lambda parser, _error: failed.append(parser))
    assert read(form.open([]), "a1") == "a1"
    assert read(form.open([]), "b2") == "b2"
    assert (len(opened), failed) == (1, ["shaky"])


def test_a_parser_that_cannot_be_opened_leaves_text() -> None:
    def open_reader(_tools: object) -> CallReader:
        raise ZeroDivisionError

    failed: list[str] = []
    form = CallFormat(open_reader, form_of(Shaky()).grammar)
    form = guarded(form, "shaky", lambda parser, _error: failed.append(parser))
    assert read(form.open([]), "text") == "text"
    assert failed == ["shaky"]
