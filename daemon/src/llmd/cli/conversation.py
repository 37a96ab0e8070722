"""A conversation with a model and its generation settings."""

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
    """A conversation with its settings."""

    model: str
    system: str | None = None
    settings: dict[str, int | float] = field(default_factory=dict)
    """Request fields by name."""
    thinking: bool | None = None
    """Whether the model thinks before it answers; None: the model's default."""
    turns: list[Turn] = field(default_factory=list)

    def messages(self, question: str, *, without: int = 0) -> list[Message]:
        """Return the messages for a question, leaving out the ``without`` oldest turns."""
        said = [{"role": "system", "content": self.system}] if self.system else []
        for turn in self.turns[without:]:
            said.append({"role": "user", "content": turn.question})
            said.append({"role": "assistant", "content": turn.answer})
        return [*said, {"role": "user", "content": question}]

    def fields(self) -> dict[str, Any]:
        """Return the request fields for generation."""
        if self.thinking is None:
            return dict(self.settings)
        return {**self.settings, "chat_template_kwargs": thinking_variables(on=self.thinking)}
