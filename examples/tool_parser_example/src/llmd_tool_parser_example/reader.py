"""Reads an answer piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallReader, Tool
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Text
from llmd_tool_parser_example.plugin import BEGIN, END


def open_reader(tools: Sequence[Tool]) -> CallReader:
    return ExampleReader({tool.name for tool in tools})


class ExampleReader:
    """A `CallReader`. A call is reported when it is complete."""

    def __init__(self, tools: set[str]) -> None:
        self._tools = tools
        self._text = ""
        self._calls = 0

    @property
    def held(self) -> int:
        return len(self._text)

    def feed(self, text: str) -> Sequence[AnswerPart]:
        self._text += text
        parts: list[AnswerPart] = []
        while (found := self._next()) is not None:
            parts += found
        return parts

    def finish(self) -> Sequence[AnswerPart]:
        rest, self._text = self._text, ""
        return [Text(rest)] if rest else []

    def _next(self) -> list[AnswerPart] | None:
        """Take the next certain parts from the held text; None: more text is needed."""
        begin = self._text.find(BEGIN)
        if begin != 0:
            certain = begin if begin > 0 else len(self._text) - _begun(self._text)
            return [Text(self._take(certain))] if certain else None
        end = self._text.find(END)
        return None if end < 0 else self._call(self._take(end + len(END)))

    def _call(self, text: str) -> list[AnswerPart]:
        """Return the parts of a complete call; text that is no call stays text."""
        name, _, arguments = text.removeprefix(BEGIN).removesuffix(END).partition(" ")
        if name not in self._tools:
            return [Text(text)]
        index, self._calls = self._calls, self._calls + 1
        return [CallStart(index, name), CallArguments(index, arguments)]

    def _take(self, count: int) -> str:
        taken, self._text = self._text[:count], self._text[count:]
        return taken


def _begun(text: str) -> int:
    """Return how many characters at the end of the text may be the beginning of a mark."""
    return next((size for size in range(len(BEGIN) - 1, 0, -1) if text.endswith(BEGIN[:size])), 0)
