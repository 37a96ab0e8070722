"""Read an answer with a script: straight-line code that waits whenever it needs more text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llmd.api.parts import AnswerPart
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script

CallScript = Callable[[Cursor, str], Script[None]]
"""Reads calls; the second argument is the mark that was read before them, or an empty string."""


class ScriptReader:
    """A `CallReader` that runs ``calls`` after each of ``marks``.

    ``at_start``: calls without a mark may also begin the answer.
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
