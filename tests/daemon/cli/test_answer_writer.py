"""Terminals get answers without control characters and dimmed reasoning; pipes get only the answer."""

from __future__ import annotations

import io

import pytest

from llmd.cli.answer_writer import (
    PipeWriter,
    SilentWriter,
    TerminalWriter,
    answer_writer,
    show_note,
)
from tests.serving.terminal import Screen


# Not fixtures: between a fixture and its test, pytest restores its own standard output.
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Make standard output a terminal with styles."""
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def in_pipe(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Make standard output a pipe."""
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stdout", pipe)
    return pipe


def test_an_answer_does_not_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)
    writer = answer_writer()
    assert isinstance(writer, TerminalWriter)
    writer.write("red\x1b[31m\tnext\nline\x9b é")
    writer.end()
    assert screen.getvalue() == "red[31m\tnext\nline é\n"


def test_pipes_get_the_answer_as_it_is_without_reasoning(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = in_pipe(monkeypatch)
    writer = answer_writer()
    assert isinstance(writer, PipeWriter)
    writer.write_reasoning("hm")
    writer.write("red\x1b[31m\tnext\nline\x9b é")
    writer.end()
    assert pipe.getvalue() == "red\x1b[31m\tnext\nline\x9b é\n"


@pytest.mark.parametrize("writer", [PipeWriter, TerminalWriter])
@pytest.mark.parametrize(("pieces", "shown"), [(["a\n"], "a\n"), (["a\n", "b"], "a\nb\n"), ([], "")])
def test_the_last_line_is_ended_once(
    monkeypatch: pytest.MonkeyPatch, writer: type[PipeWriter | TerminalWriter], pieces: list[str], shown: str
) -> None:
    pipe = in_pipe(monkeypatch)
    written = writer()
    for piece in pieces:
        written.write(piece)
    written.end()
    assert pipe.getvalue() == shown


@pytest.mark.parametrize(("writer", "shown"), [(TerminalWriter, "\n"), (PipeWriter, "")])
def test_what_follows_an_interrupt_does_not_stand_behind_its_echo(
    monkeypatch: pytest.MonkeyPatch, writer: type[PipeWriter | TerminalWriter], shown: str
) -> None:
    pipe = in_pipe(monkeypatch)
    writer().end(interrupted=True)
    assert pipe.getvalue() == shown


def test_reasoning_is_dimmed_and_an_empty_line_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)
    writer = TerminalWriter()
    writer.write_reasoning("h\x1bm")
    writer.write("yes")
    writer.end()
    assert screen.getvalue() == "\x1b[2mhm\x1b[0m\n\nyes\n"


def test_terminals_get_lines_broken_between_words_and_pipes_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    screen = on_terminal(monkeypatch)
    written, shown = "the quick brown fox", "the quick\nbrown fox\n"
    for writer, expected in ((TerminalWriter(), shown), (PipeWriter(), f"{written}\n")):
        screen.truncate(0)
        screen.seek(0)
        writer.write(written[:6])
        writer.write(written[6:])
        writer.end()
        assert screen.getvalue() == expected


def test_a_fence_that_reasoning_leaves_open_does_not_reach_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    screen = on_terminal(monkeypatch)
    writer = TerminalWriter()
    writer.write_reasoning("```")
    writer.write("the quick brown fox")
    writer.end()
    assert screen.getvalue().endswith("\n\nthe quick\nbrown fox\n")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_without_styles_words_tell_reasoning_from_the_answer(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    screen = on_terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    writer = TerminalWriter()
    writer.write_reasoning("hm")
    writer.write("yes")
    writer.end()
    show_note("cut")
    assert screen.getvalue() == "[thinking]\nhm\n[answer]\nyes\n[cut]\n"


def test_notes_are_dimmed_and_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)
    show_note("cut")
    assert screen.getvalue() == "\x1b[2m[cut]\x1b[0m\n"
    pipe, errors = io.StringIO(), Screen()
    monkeypatch.setattr("sys.stdout", pipe)
    monkeypatch.setattr("sys.stderr", errors)
    show_note("cut")
    assert (pipe.getvalue(), errors.getvalue()) == ("", "\x1b[2m[cut]\x1b[0m\n")
    monkeypatch.setattr("sys.stderr", pipe)
    show_note("cut")
    assert pipe.getvalue() == ""


def test_what_is_printed_as_json_is_not_shown_before(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = in_pipe(monkeypatch)
    writer = SilentWriter()
    writer.write("a")
    writer.write_reasoning("b")
    writer.end()
    assert pipe.getvalue() == ""
