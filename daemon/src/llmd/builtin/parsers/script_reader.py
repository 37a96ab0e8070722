"""Reads an answer by a script: straight-line code that waits wherever it needs more text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llmd.api.parts import AnswerPart
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script

CallScript = Callable[[Cursor, str], Script[None]]
"""Reads calls; the second argument is the mark that has been read before them, empty where there was none."""


class ScriptReader:
    """A `CallReader`: ``calls`` reads calls once one of ``marks`` has been read.

    ``at_start``: calls may stand without a mark where the answer begins.
    """

    def __init__(self, marks: Sequence[str], calls: CallScript, *, at_start: bool = False) -> None:
        self._cursor = Cursor()
        self._marks = marks
        self._calls = calls
        self._script = self._run(at_start=at_start)

    @property
    def held(self) -> int:
        return self._cursor.held

    def feed(self, text: str) -> Sequence[AnswerPart]:
        self._cursor.push(text)
        self._advance()
        return self._cursor.take()

    def finish(self) -> Sequence[AnswerPart]:
        self._cursor.push("", ended=True)
        self._advance()
        return self._cursor.take()

    def _advance(self) -> None:
        next(self._script, None)

    def _run(self, *, at_start: bool) -> Script[None]:
        if at_start:
            yield from self._attempt("")
        while mark := (yield from self._cursor.text_until(self._marks)):
            yield from self._attempt(mark)

    def _attempt(self, mark: str) -> Script[None]:
        begin = self._cursor.place
        try:
            yield from self._calls(self._cursor, mark)
        except MalformedError:
            self._cursor.reject(begin)
        else:
            self._cursor.settle()
