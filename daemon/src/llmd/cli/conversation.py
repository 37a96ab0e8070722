"""A conversation with a model: what was said, and how answers are made."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from llmd.chat.answers.thinking import thinking_variables

Message = dict[str, str]


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its answer."""

    question: str
    answer: str


class Conversation(Struct, forbid_unknown_fields=True):
    """``settings`` are request fields by name. ``thinking`` None leaves it to the model whether it thinks."""

    model: str
    system: str | None = None
    settings: dict[str, int | float] = field(default_factory=dict)
    thinking: bool | None = None
    turns: list[Turn] = field(default_factory=list)

    def messages(self, question: str, *, without: int = 0) -> list[Message]:
        """The messages that ask a question, without the oldest turns."""
        said = [{"role": "system", "content": self.system}] if self.system else []
        for turn in self.turns[without:]:
            said.append({"role": "user", "content": turn.question})
            said.append({"role": "assistant", "content": turn.answer})
        return [*said, {"role": "user", "content": question}]

    def fields(self) -> dict[str, Any]:
        """The request fields that say how the answer is made."""
        if self.thinking is None:
            return dict(self.settings)
        return {**self.settings, "chat_template_kwargs": thinking_variables(on=self.thinking)}
