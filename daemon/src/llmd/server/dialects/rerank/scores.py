"""What a ranking found."""

from __future__ import annotations

from msgspec import Struct


class Scores(Struct, frozen=True):
    """``relevance`` of each document, the higher the better; ``prompt_tokens`` of all prompts together, which lack
    ``truncated_tokens`` of their documents. ``ignored`` are fields that mean nothing to a model that ranks in this way.
    """

    relevance: list[float]
    prompt_tokens: int
    truncated_tokens: int
    ignored: tuple[str, ...] = ()
