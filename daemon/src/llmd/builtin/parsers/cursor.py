"""The characters of an answer as they arrive, and the parts made from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text

T = TypeVar("T")
Script = Generator[None, None, T]
"""Reads from a cursor; yields when it needs more text. How the text is split does not change its result."""


class MalformedError(Exception):
    """Raised if text that looked like a call is not one."""


class Cursor:
    """The position of a script in an answer, counted from the answer's start, and the parts emitted so far.

    Text that was read but not emitted is undecided: `reject` turns it into text. Whitespace before and after
    calls is dropped.
    """

    def __init__(self) -> None:
        self._text = ""
        self._start = 0  # position of the first kept character
        self._ended = False
        self._parts: list[AnswerPart] = []
        self._num_calls = 0
        self._after_call = False
        self._emits_arguments = False
        self.place = 0
        self._emitted = 0

    @property
    def held(self) -> int:
        """Number of received characters that are undecided."""
        return self._end - self._emitted

    @property
    def _end(self) -> int:
        return self._start + len(self._text)

    def push(self, text: str, *, ended: bool = False) -> None:
        """Add received text; ``ended``: no more will follow."""
        self._text += text
        self._ended = ended

    def take(self) -> list[AnswerPart]:
        """Return the parts emitted since the last call."""
        if self._emits_arguments:
            self._emit_arguments()
        self._text = self._text[self._emitted - self._start :]
        self._start = self._emitted
        parts, self._parts = self._parts, []
        return parts

    def _emit(self, part: Text | Reasoning | CallArguments) -> None:
        """Add a part; merge it with the last part if both are of one kind, and of the same call."""
        match part, self._parts[-1:]:
            case Text(text), [Text(before)]:
                self._parts[-1] = Text(before + text)
            case Reasoning(text), [Reasoning(before)]:
                self._parts[-1] = Reasoning(before + text)
            case CallArguments(index, json), [CallArguments(_, before)]:
                self._parts[-1] = CallArguments(index, before + json)
            case _:
                self._parts.append(part)

    def text(self, first: int, last: int) -> str:
        """Return the undecided text at positions ``[first, last)``."""
        return self._text[first - self._start : last - self._start]

    def peek(self) -> Script[str]:
        """Return the next character without reading it; empty at the end."""
        while self.place == self._end and not self._ended:
            yield
        return self.text(self.place, self.place + 1)

    def read(self) -> Script[str]:
        """Read the next character; empty at the end."""
        char = yield from self.peek()
        self.place += len(char)
        return char

    def run(self, pattern: re.Pattern[str]) -> Script[str]:
        """Read the longest run that matches ``pattern``, a repeated character class."""
        read = ""
        while True:
            match = pattern.match(self._text, self.place - self._start)
            if match is not None:
                read += match.group()
                self.place += len(match.group())
            if self.place < self._end or self._ended:
                return read
            yield

    def accept(self, literal: str) -> Script[bool]:
        """Read ``literal`` if it comes next."""
        while True:
            seen = self.text(self.place, self.place + len(literal))
            if seen == literal:
                self.place += len(literal)
                return True
            if self._ended or not literal.startswith(seen):
                return False
            yield

    def expect(self, literal: str) -> Script[None]:
        """Read ``literal``; raise `MalformedError` if something else comes."""
        if not (yield from self.accept(literal)):
            raise MalformedError

    def until(self, *literals: str, tell: Callable[[str], None] | None = None) -> Script[str]:
        """Read up to and including the first of ``literals``; return the text before it.

        ``tell`` is called with pieces of that text as they arrive.

        Raises:
            MalformedError: the answer ended before any of them.
        """
        read = ""
        while True:
            ahead = self._text[self.place - self._start :]
            place, literal = _first_of(literals, ahead)
            read += ahead[:place]
            self.place += place + len(literal)
            if tell is not None:
                tell(ahead[:place])
            if literal:
                return read
            if self._ended:
                raise MalformedError
            yield

    def text_until(self, marks: Sequence[str], kind: type[Text | Reasoning] = Text) -> Script[str]:
        """Emit text up to the first of ``marks``, read and return the mark; "" if the answer ended.

        ``kind`` says as which part.
        """
        while True:
            ahead = self._text[self.place - self._start :]
            place, mark = _first_of(marks, ahead)
            if not mark and self._ended:
                self._emit_rest(kind)
                return mark
            self._emit_text(self.place + place, kind)
            self.place += place + len(mark)
            if mark:
                return mark
            yield

    def begin_call(self, name: str) -> None:
        """Emit the start of a call; all undecided text belongs to it."""
        self._parts.append(CallStart(self._num_calls, name))
        self._num_calls += 1
        self._emitted = self.place
        self._after_call = True

    def arguments(self, json: str) -> None:
        """Emit a piece of the arguments; all undecided text belongs to the call."""
        if json:
            self._emit(CallArguments(self._num_calls - 1, json))
        self._emitted = self.place

    def arguments_from(self, script: Script[T]) -> Script[T]:
        """Emit what ``script`` reads as arguments, as it arrives."""
        self._emits_arguments = True
        try:
            return (yield from script)
        finally:
            self._emit_arguments()
            self._emits_arguments = False

    def settle(self) -> None:
        """Drop the undecided text: it was markup of calls."""
        self._emitted = self.place

    def reject(self, upto: int) -> None:
        """Emit the undecided text before ``upto`` as text; the rest is read again."""
        self.place = max(upto, self._emitted)
        if self.place > self._emitted:
            self._emit(Text(self.text(self._emitted, self.place)))
            self._emitted = self.place
            self._after_call = False

    def _emit_arguments(self) -> None:
        self.arguments(self.text(self._emitted, self.place))

    def _emit_text(self, end: int, kind: type[Text | Reasoning]) -> None:
        """Emit text before ``end`` without trailing whitespace, which may precede a call."""
        text = self.text(self._emitted, end).rstrip()
        if text:
            self._emit(kind(text))
            self._emitted += len(text)
            self._after_call = False

    def _emit_rest(self, kind: type[Text | Reasoning]) -> None:
        rest = self.text(self._emitted, self._end)
        self.place = self._emitted = self._end
        if rest and not (self._after_call and rest.isspace()):
            self._emit(kind(rest))


def _first_of(literals: Sequence[str], text: str) -> tuple[int, str]:
    """Return the position and text of the first of ``literals``; else where one might begin, and ""."""
    found = [(place, literal) for literal in literals if (place := text.find(literal)) >= 0]
    if found:
        return min(found)
    return len(text) - max((_overlap(text, literal) for literal in literals), default=0), ""


def _overlap(text: str, mark: str) -> int:
    """Return the length of the longest suffix of ``text`` that is a proper prefix of ``mark``."""
    longest = min(len(text), len(mark) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
