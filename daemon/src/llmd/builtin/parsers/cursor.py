"""The characters of an answer as they come, and the parts that were made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Text

T = TypeVar("T")
Script = Generator[None, None, T]
"""Reads from a cursor; it yields where it needs more text, so that it does the same however the text is cut."""


class MalformedError(Exception):
    """What looked like a call is none."""


class Cursor:
    """Where a script reads, and what it has told so far. Places are counted from the start of the answer.

    What was read and not told is undecided: `reject` makes it text. Whitespace before and after calls is not told.
    """

    def __init__(self) -> None:
        self._text = ""
        self._start = 0  # where the text that is kept begins
        self._ended = False
        self._parts: list[AnswerPart] = []
        self._num_calls = 0
        self._after_call = False
        self._telling_arguments = False
        self.place = 0
        self._told = 0

    @property
    def held(self) -> int:
        """Characters that came and are undecided."""
        return self._end - self._told

    @property
    def _end(self) -> int:
        return self._start + len(self._text)

    def push(self, text: str, *, ended: bool = False) -> None:
        """More text has come, or no more will."""
        self._text += text
        self._ended = ended

    def take(self) -> list[AnswerPart]:
        """The parts since the last time."""
        if self._telling_arguments:
            self._tell_arguments()
        self._text = self._text[self._told - self._start :]
        self._start = self._told
        parts, self._parts = self._parts, []
        return parts

    def _tell(self, part: Text | CallArguments) -> None:
        """Keep a part; two of one kind that follow each other are one."""
        match part, self._parts[-1:]:
            case Text(text), [Text(before)]:
                self._parts[-1] = Text(before + text)
            case CallArguments(index, json), [CallArguments(_, before)]:
                self._parts[-1] = CallArguments(index, before + json)
            case _:
                self._parts.append(part)

    def text(self, first: int, last: int) -> str:
        """The undecided text of places ``[first, last)``."""
        return self._text[first - self._start : last - self._start]

    def peek(self) -> Script[str]:
        """The next character; empty at the end."""
        while self.place == self._end and not self._ended:
            yield
        return self.text(self.place, self.place + 1)

    def read(self) -> Script[str]:
        """The next character, which is then behind the cursor; empty at the end."""
        char = yield from self.peek()
        self.place += len(char)
        return char

    def run(self, pattern: re.Pattern[str]) -> Script[str]:
        """The longest run that matches ``pattern``, a repeated class of characters."""
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
        """Read ``literal``; raises `MalformedError` where something else comes."""
        if not (yield from self.accept(literal)):
            raise MalformedError

    def until(self, *literals: str, tell: Callable[[str], None] | None = None) -> Script[str]:
        """What comes before the first of ``literals``, which is read, too.

        ``tell`` gets it in pieces, as it comes.

        Raises:
            MalformedError: none of them comes.
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

    def text_until(self, marks: Sequence[str]) -> Script[str]:
        """Tell text up to the first of ``marks``, and read and return that; empty: the text ended without one."""
        while True:
            ahead = self._text[self.place - self._start :]
            place, mark = _first_of(marks, ahead)
            if not mark and self._ended:
                self._tell_rest()
                return mark
            self._tell_text(self.place + place)
            self.place += place + len(mark)
            if mark:
                return mark
            yield

    def begin_call(self, name: str) -> None:
        """Tell that a call begins; all that was read belongs to it."""
        self._parts.append(CallStart(self._num_calls, name))
        self._num_calls += 1
        self._told = self.place
        self._after_call = True

    def arguments(self, json: str) -> None:
        """Tell a piece of the arguments; all that was read belongs to the call."""
        if json:
            self._tell(CallArguments(self._num_calls - 1, json))
        self._told = self.place

    def arguments_from(self, script: Script[T]) -> Script[T]:
        """Tell what ``script`` reads as arguments, as it comes."""
        self._telling_arguments = True
        try:
            return (yield from script)
        finally:
            self._tell_arguments()
            self._telling_arguments = False

    def settle(self) -> None:
        """What was read was markup of calls."""
        self._told = self.place

    def reject(self, upto: int) -> None:
        """What is undecided before ``upto`` is text after all; what follows is read again."""
        self.place = max(upto, self._told)
        if self.place > self._told:
            self._tell(Text(self.text(self._told, self.place)))
            self._told = self.place
            self._after_call = False

    def _tell_arguments(self) -> None:
        self.arguments(self.text(self._told, self.place))

    def _tell_text(self, end: int) -> None:
        """Tell text before ``end``, but for the whitespace there: it may stand before a call."""
        text = self.text(self._told, end).rstrip()
        if text:
            self._tell(Text(text))
            self._told += len(text)
            self._after_call = False

    def _tell_rest(self) -> None:
        rest = self.text(self._told, self._end)
        self.place = self._told = self._end
        if rest and not (self._after_call and rest.isspace()):
            self._tell(Text(rest))


def _first_of(literals: Sequence[str], text: str) -> tuple[int, str]:
    """Where the first of ``literals`` begins, and which; else where one might begin once more text has come."""
    found = [(place, literal) for literal in literals if (place := text.find(literal)) >= 0]
    if found:
        return min(found)
    return len(text) - max((_overlap(text, literal) for literal in literals), default=0), ""


def _overlap(text: str, mark: str) -> int:
    """The length of the longest end of ``text`` with which ``mark`` begins, short of all of it."""
    longest = min(len(text), len(mark) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
