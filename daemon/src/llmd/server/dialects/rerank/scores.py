"""What a ranking found."""

from __future__ import annotations

from msgspec import Struct


class Scores(Struct, frozen=True):
    """``relevance`` of each document, the higher the better; ``prompt_tokens`` of all prompts together, which lack
    ``truncated_tokens`` of their documents.
    """

    relevance: list[float]
    prompt_tokens: int
    truncated_tokens: int
