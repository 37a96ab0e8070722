"""Separate reasoning from the answer as the text is generated."""

from __future__ import annotations

from llmd.api.parsing import ReasoningMarks
from llmd.api.parts import Reasoning, Text


class ReasoningSplitter:
    """Splits the text of one answer; drops the marks and the whitespace next to them.

    Only the beginning of an answer can be reasoning. ``is_open``: the prompt has already opened it. If
    reasoning is never closed, the whole answer is reasoning.
    """

    def __init__(self, marks: ReasoningMarks, *, is_open: bool) -> None:
        self._marks = marks
        self._waits_for_mark = not is_open
        self._drops_space = is_open
        self._held = ""
        self.is_reasoning = is_open

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return len(self._held)

    def feed(self, text: str) -> list[Reasoning | Text]:
        """Read the next piece of text."""
        self._held += text
        if self._waits_for_mark:
            self._look_for_begin()
        thought: list[Reasoning | Text] = list(self._thoughts()) if self.is_reasoning else []
        answer = "" if self.is_reasoning or self._waits_for_mark else self._answer()
        return [*thought, Text(answer)] if answer else thought

    def finish(self) -> list[Reasoning | Text]:
        """Return the text held back; call it at the end of the answer."""
        rest, self._held = self._held, ""
        if self._drops_space:
            rest = rest.lstrip()
        if not rest:
            return []
        return [Reasoning(rest) if self.is_reasoning else Text(rest)]

    def _look_for_begin(self) -> None:
        begin, stripped = self._marks.begin, self._held.lstrip()
        if stripped.startswith(begin):
            self._held = stripped[len(begin) :]
            self.is_reasoning = self._drops_space = True
        self._waits_for_mark = not self.is_reasoning and begin.startswith(stripped)

    def _thoughts(self) -> list[Reasoning]:
        if self._drops_space:
            self._held = self._held.lstrip()
            self._drops_space = not self._held
        before, end, after = self._held.partition(self._marks.end)
        if end:
            self._held = after
            self.is_reasoning, self._drops_space = False, True
        else:
            before = before[: len(before) - _overlap(before, self._marks.end)].rstrip()
            self._held = self._held[len(before) :]
        before = before.rstrip()
        return [Reasoning(before)] if before else []

    def _answer(self) -> str:
        if self._drops_space:
            self._held = self._held.lstrip()
            self._drops_space = not self._held
        answer, self._held = self._held, ""
        return answer


def _overlap(text: str, mark: str) -> int:
    """Return the length of the longest suffix of ``text`` that is a proper prefix of ``mark``."""
    longest = min(len(text), len(mark) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
