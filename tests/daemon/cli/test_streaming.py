"""Answers are written as they come, measured, and kept when Ctrl-C ends them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from llmd.api.errors import EngineCrashedError
from llmd.cli.streaming import Printed, print_answer, show_reasoning, show_text, stats_line
from llmd.client import Answer, Usage

USAGE = Usage(prompt_tokens=5, completion_tokens=3)


def answers() -> Iterator[Answer]:
    yield Answer(text="He")
    yield Answer(text="llo")
    yield Answer(finish="length")
    yield Answer(usage=USAGE)


def ticking() -> Iterator[float]:
    """0 when asking, 1 at the first text, 3 at the end."""
    yield from (0.0, 1.0, 3.0)


def test_writes_pieces_as_they_come_and_measures() -> None:
    written: list[str] = []
    printed = print_answer(answers(), written.append, ticking().__next__)
    assert written == ["He", "llo"]
    assert printed == Printed("Hello", "length", 5, 3, first_s=1.0, total_s=3.0)
    assert printed.tokens_per_s == 1.0


def test_reasoning_is_written_apart_and_ends_with_an_empty_line() -> None:
    def thinking() -> Iterator[Answer]:
        yield Answer(reasoning="hm")
        yield Answer(reasoning="!")
        yield from answers()

    written: list[str] = []
    printed = print_answer(
        thinking(), written.append, write_reasoning=lambda text: written.append(f"~{text}")
    )
    assert written == ["~hm", "~!", "~\n\n", "He", "llo"]
    assert printed.text == "Hello"


def test_reasoning_is_dimmed_on_a_terminal_and_left_out_of_pipes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show_reasoning("hm")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_reasoning("h\x1bm")
    assert capsys.readouterr().out == "\x1b[2mhm\x1b[0m"


def test_ctrl_c_ends_the_request_and_keeps_the_text() -> None:
    closed = []

    def interrupted() -> Iterator[Answer]:
        try:
            yield Answer(text="He")
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    printed = print_answer(interrupted(), lambda _: None)
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

    def broken(_: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        print_answer(endless(), broken)
    assert closed == [True]


def test_errors_of_the_daemon_pass_through() -> None:
    def failing() -> Iterator[Answer]:
        yield Answer(text="He")
        raise EngineCrashedError("it died")

    with pytest.raises(EngineCrashedError):
        print_answer(failing(), lambda _: None)


def test_statistics_say_what_is_known() -> None:
    assert stats_line(Printed("Hello", "stop", 5, 3, first_s=0.25, total_s=1.25)) == (
        "prompt 5 tokens, answer 3 tokens, 2.0 tokens/s, first text after 250 ms, 1.25 s in all"
    )
    assert stats_line(Printed("", "interrupted", None, None, first_s=None, total_s=1.0)) == "1.00 s in all"


class Screen(io.StringIO):
    """Standard output on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdout", "shown"),
    [(Screen(), "red[31m\tnext\nline é"), (io.StringIO(), "red\x1b[31m\tnext\nline\x9b é")],
)
def test_an_answer_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, stdout: io.StringIO, shown: str
) -> None:
    monkeypatch.setattr("sys.stdout", stdout)
    show_text("red\x1b[31m\tnext\nline\x9b é")
    assert stdout.getvalue() == shown
