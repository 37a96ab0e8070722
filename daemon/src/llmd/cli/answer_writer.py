"""Where the text of an answer goes while it is made: to a terminal, into a pipe, or nowhere."""

from __future__ import annotations

import sys
from typing import Protocol

import click

from llmd.cli.terminal import dimmed, has_styles, terminal_width
from llmd.cli.word_wrap import WordWrap

CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class AnswerWriter(Protocol):
    """Takes an answer in pieces. ``end`` follows the last one, also where the answer failed or Ctrl-C interrupted it."""

    def write(self, text: str) -> None: ...

    def write_reasoning(self, text: str) -> None: ...

    def end(self, *, interrupted: bool = False) -> None: ...


class TerminalWriter:
    """Shows people the answer, broken between words, and, dimmed, what the model thought before.

    What a model says does not steer the terminal.
    """

    def __init__(self) -> None:
        self._wrap = WordWrap(terminal_width)
        self._is_thinking = False
        self._line_is_open = False

    def write(self, text: str) -> None:
        if self._is_thinking:
            self.end()
            self._show("\n" if has_styles() else "[answer]\n")
        self._show(self._wrap.feed(text.translate(CONTROLS)))

    def write_reasoning(self, text: str) -> None:
        if not self._is_thinking:
            self._is_thinking = True
            self._show("" if has_styles() else "[thinking]\n")
        self._show(self._wrap.feed(text.translate(CONTROLS)))

    def end(self, *, interrupted: bool = False) -> None:
        self._show(self._wrap.flush())
        self._wrap = WordWrap(terminal_width)
        self._is_thinking = False
        if self._line_is_open or interrupted:  # the terminal has shown ^C
            self._show("\n")

    def _show(self, text: str) -> None:
        if text:
            self._line_is_open = not text.endswith("\n")
            click.echo(dimmed(text) if self._is_thinking else text, nl=False, color=True)


class PipeWriter:
    """Writes the answer alone, as it is, with a newline behind it: programs do not want to read reasoning."""

    def __init__(self) -> None:
        self._line_is_open = False

    def write(self, text: str) -> None:
        self._line_is_open = not text.endswith("\n")
        click.echo(text, nl=False, color=True)  # without color click would take escapes out of pipes

    def write_reasoning(self, text: str) -> None:
        pass

    def end(self, *, interrupted: bool = False) -> None:
        if self._line_is_open:
            self.write("\n")


class SilentWriter:
    """Shows nothing, where the whole answer is printed afterwards."""

    def write(self, text: str) -> None:
        pass

    def write_reasoning(self, text: str) -> None:
        pass

    def end(self, *, interrupted: bool = False) -> None:
        pass


def answer_writer() -> AnswerWriter:
    """The writer that suits standard output."""
    return TerminalWriter() if sys.stdout.isatty() else PipeWriter()


def show_note(text: str) -> None:
    """Show a dimmed note to people, on whichever of standard output and standard error is a terminal."""
    stream = next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)
    if stream is not None:
        click.echo(dimmed(f"[{text}]"), file=stream, color=True)
