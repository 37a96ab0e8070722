"""The result of reranking."""

from __future__ import annotations

from msgspec import Struct


class Scores(Struct, frozen=True):
    """The scores of a request's documents."""

    relevance: list[float]
    """Relevance of each document; higher is better."""
    prompt_tokens: int
    """Tokens of all prompts together."""
    truncated_tokens: int
    """Tokens that were cut off the documents."""
    ignored: tuple[str, ...] = ()
    """Fields of the request that this kind of reranker ignores."""
