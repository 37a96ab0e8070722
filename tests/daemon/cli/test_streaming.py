"""Answers are written as they arrive, measured, and kept when Ctrl-C stops them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmd.api.errors import EngineCrashedError
from llmd.cli.answer_writer import SilentWriter
from llmd.cli.streaming import Printed, cut_note, print_answer, stats_line
from llmd.client import Answer, Usage

USAGE = Usage(prompt_tokens=5, completion_tokens=3)


class Written(list[str]):
    """Records what is written: reasoning between tildes, the end as a dot or ^C."""

    def write(self, text: str) -> None:
        self.append(text)

    def write_reasoning(self, text: str) -> None:
        self.append(f"~{text}~")

    def end(self, *, interrupted: bool = False) -> None:
        self.append("^C" if interrupted else ".")


def answers() -> Iterator[Answer]:
    yield Answer(text="He")
    yield Answer(text="llo")
    yield Answer(finish="length")
    yield Answer(usage=USAGE)


def ticking() -> Iterator[float]:
    """A clock: 0 at the request, 1 at the first text, 3 at the end."""
    yield from (0.0, 1.0, 3.0)


def test_writes_pieces_as_they_come_and_measures() -> None:
    written = Written()
    printed = print_answer(answers(), written, ticking().__next__)
    assert written == ["He", "llo", "."]
    assert printed == Printed("Hello", "length", 5, 3, first_s=1.0, total_s=3.0)
    assert printed.tokens_per_s == 1.0


def test_reasoning_is_written_apart_and_is_no_part_of_the_answer() -> None:
    def thinking() -> Iterator[Answer]:
        yield Answer(reasoning="hm")
        yield Answer(reasoning="!")
        yield from answers()

    written = Written()
    assert print_answer(thinking(), written).text == "Hello"
    assert written == ["~hm~", "~!~", "He", "llo", "."]


def test_ctrl_c_ends_the_request_and_keeps_the_text() -> None:
    closed = []

    def interrupted() -> Iterator[Answer]:
        try:
            yield Answer(text="He")
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    written = Written()
    printed = print_answer(interrupted(), written)
    assert written == ["He", "^C"]
    assert (printed.text, printed.finish, printed.completion_tokens) == ("He", "interrupted", None)
    assert closed == [True]


def test_a_reader_that_fails_closes_the_request() -> None:
    closed = []

    def endless() -> Iterator[Answer]:
        try:
            while True:
                yield Answer(text="x")
        finally:
            closed.append(True)

    class Broken(SilentWriter):
        def write(self, text: str) -> None:
            raise BrokenPipeError(text)

    with pytest.raises(BrokenPipeError):
        print_answer(endless(), Broken())
    assert closed == [True]


def test_errors_of_the_daemon_pass_through_once_the_line_has_ended() -> None:
    def failing() -> Iterator[Answer]:
        yield Answer(text="He")
        raise EngineCrashedError("it died")

    written = Written()
    with pytest.raises(EngineCrashedError):
        print_answer(failing(), written)
    assert written == ["He", "."]


def test_statistics_say_what_is_known() -> None:
    assert stats_line(Printed("Hello", "stop", 5, 3, first_s=0.25, total_s=1.25)) == (
        "prompt 5 tokens, answer 3 tokens, 2.0 tokens/s, first text after 250 ms, 1.25 s in total, "
        "finish reason stop"
    )
    assert stats_line(Printed("", "interrupted", None, None, first_s=None, total_s=1.0)) == (
        "1.00 s in total, finish reason interrupted"
    )


@pytest.mark.parametrize(
    ("finish", "max_tokens", "note"),
    [
        ("stop", 3, ""),
        ("interrupted", 3, ""),
        ("length", 3, "cut at max_tokens 3"),
        ("length", 9, "cut: the context window is full"),
        ("length", None, "cut: the context window is full"),
    ],
)
def test_an_answer_that_was_cut_says_by_which_limit(finish: str, max_tokens: int | None, note: str) -> None:
    assert cut_note(Printed("Hello", finish, 5, 3, first_s=0.1, total_s=0.2), max_tokens) == note
