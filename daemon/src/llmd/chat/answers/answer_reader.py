"""The text of one answer to its parts: reasoning first, then text and calls of tools."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallReader
from llmd.api.parts import AnswerPart, Reasoning, Text
from llmd.chat.answers.reasoning import ReasoningSplitter


class AnswerReader:
    """Reads the text of one answer as it comes.

    ``marks`` are the texts of special tokens that it must see although users do not.
    """

    def __init__(
        self,
        *,
        reasoning: ReasoningSplitter | None = None,
        calls: CallReader | None = None,
        marks: frozenset[str] = frozenset(),
    ) -> None:
        self._reasoning = reasoning
        self._calls = calls
        self.marks = marks

    @property
    def is_reasoning(self) -> bool:
        """Whether what comes next is reasoning, as far as it is known."""
        return self._reasoning is not None and self._reasoning.is_reasoning

    @property
    def held(self) -> int:
        """How many of the last characters no part tells of yet."""
        return sum(reader.held for reader in (self._reasoning, self._calls) if reader is not None)

    def feed(self, text: str) -> list[AnswerPart]:
        """Take the next piece of text."""
        return self._read_calls(self._split(text))

    def finish(self) -> list[AnswerPart]:
        """The parts of what was held back, now that the answer has ended."""
        parts = self._read_calls(self._reasoning.finish() if self._reasoning is not None else [])
        return [*parts, *(self._calls.finish() if self._calls is not None else ())]

    def _split(self, text: str) -> list[Reasoning | Text]:
        if self._reasoning is not None:
            return self._reasoning.feed(text)
        return [Text(text)] if text else []

    def _read_calls(self, split: Sequence[Reasoning | Text]) -> list[AnswerPart]:
        if self._calls is None:
            return list(split)
        parts: list[AnswerPart] = []
        for part in split:
            parts += self._calls.feed(part.text) if isinstance(part, Text) else [part]
        return parts
