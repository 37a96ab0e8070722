"""Questions that were asked before, to ask them again."""

from __future__ import annotations

from collections.abc import Sequence


class PromptHistory:
    """Steps through earlier questions; the unsent draft is behind the newest one."""

    def __init__(self, questions: Sequence[str] = ()) -> None:
        self._questions = list(questions)
        self._place = len(self._questions)
        self._draft = ""

    def add(self, question: str) -> None:
        """Add a question that was sent."""
        if question and self._questions[-1:] != [question]:
            self._questions.append(question)
        self._place = len(self._questions)

    def older(self, present: str) -> str | None:
        """Return the question before; None if there is none. ``present`` is what the prompt shows."""
        if self._place == 0:
            return None
        if self._place == len(self._questions):
            self._draft = present
        self._place -= 1
        return self._questions[self._place]

    def newer(self) -> str | None:
        """Return the next question, or at last the draft; None if the draft is shown."""
        if self._place == len(self._questions):
            return None
        self._place += 1
        return self._draft if self._place == len(self._questions) else self._questions[self._place]
