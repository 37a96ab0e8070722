"""What a conversation is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """A question and its answer. A recited answer is the same for every wording, but for slots."""

    question: str
    answer: str
    recited: bool = False


@dataclass(frozen=True)
class Conversation:
    """Turns after an optional system prompt, which also describes the tools."""

    system: str
    turns: tuple[Turn, ...]
