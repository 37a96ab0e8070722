"""Split the text of one answer into parts: reasoning first, then text and tool calls."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallReader
from llmd.api.parts import AnswerPart, Reasoning, Text
from llmd.chat.answers.reasoning import ReasoningSplitter


class AnswerReader:
    """Reads the text of one answer as it is generated.

    ``marks`` are special tokens that the reader must see as text although users do not.
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
        """Whether the text read so far ends inside reasoning."""
        return self._reasoning is not None and self._reasoning.is_reasoning

    @property
    def held(self) -> int:
        """How many of the last characters are not part of any returned part yet."""
        return sum(reader.held for reader in (self._reasoning, self._calls) if reader is not None)

    def feed(self, text: str) -> list[AnswerPart]:
        """Read the next piece of text."""
        return self._read_calls(self._split(text))

    def finish(self) -> list[AnswerPart]:
        """Return the parts of the text held back; call it at the end of the answer."""
        parts = self._read_calls(self._reasoning.finish() if self._reasoning is not None else [])
        return [*parts, *(self._shown(self._calls.finish()) if self._calls is not None else ())]

    def _split(self, text: str) -> list[Reasoning | Text]:
        if self._reasoning is not None:
            return self._reasoning.feed(text)
        return [Text(text)] if text else []

    def _read_calls(self, split: Sequence[Reasoning | Text]) -> list[AnswerPart]:
        if self._calls is None:
            return list(split)
        parts: list[AnswerPart] = []
        for part in split:
            parts += self._shown(self._calls.feed(part.text)) if isinstance(part, Text) else [part]
        return parts

    def _shown(self, parts: Sequence[AnswerPart]) -> Sequence[AnswerPart]:
        """Return the parts of a reader of calls: its reasoning stays text, if the answer's does."""
        if self._reasoning is not None:
            return parts
        return [Text(part.text) if isinstance(part, Reasoning) else part for part in parts]
