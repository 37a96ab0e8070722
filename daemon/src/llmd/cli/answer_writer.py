"""Writers for streamed answers: to a terminal, to a pipe, or nowhere."""

from __future__ import annotations

import sys
from typing import Protocol

import click

from llmd.cli.terminal import dimmed, has_styles, terminal_width
from llmd.cli.word_wrap import WordWrap

CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class AnswerWriter(Protocol):
    """Takes an answer in pieces. ``end`` is always called last, also after a failure or Ctrl-C."""

    def write(self, text: str) -> None: ...

    def write_reasoning(self, text: str) -> None: ...

    def end(self, *, interrupted: bool = False) -> None: ...


class TerminalWriter:
    """Shows the answer to people, wrapped at words, with the model's reasoning dimmed before it.

    Control characters in the output are removed: a model must not control the terminal.
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
        if self._line_is_open or interrupted:  # the terminal shows ^C on this line
            self._show("\n")

    def _show(self, text: str) -> None:
        if text:
            self._line_is_open = not text.endswith("\n")
            click.echo(dimmed(text) if self._is_thinking else text, nl=False, color=True)


class PipeWriter:
    """Writes the answer unchanged and without reasoning, and ends it with a newline."""

    def __init__(self) -> None:
        self._line_is_open = False

    def write(self, text: str) -> None:
        self._line_is_open = not text.endswith("\n")
        click.echo(text, nl=False, color=True)  # without color=True click would strip escape sequences

    def write_reasoning(self, text: str) -> None:
        pass

    def end(self, *, interrupted: bool = False) -> None:
        if self._line_is_open:
            self.write("\n")


class SilentWriter:
    """Shows nothing: the whole answer is printed afterwards."""

    def write(self, text: str) -> None:
        pass

    def write_reasoning(self, text: str) -> None:
        pass

    def end(self, *, interrupted: bool = False) -> None:
        pass


def answer_writer() -> AnswerWriter:
    """Return the writer that suits standard output."""
    return TerminalWriter() if sys.stdout.isatty() else PipeWriter()


def show_note(text: str) -> None:
    """Show a dimmed note on standard output or, if that is no terminal, on standard error if it is one."""
    stream = next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)
    if stream is not None:
        click.echo(dimmed(f"[{text}]"), file=stream, color=True)
