"""The documents of a request and their scores, for both kinds of reranker."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.tokenizers.tokenizer import Tokenizer


class Documents(Struct, frozen=True):
    """Documents as the model gets them: truncated if the request limits their length."""

    texts: tuple[str, ...]
    """In the order of the request."""
    truncated_tokens: int = 0
    """Tokens that were cut off, in total."""


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


def cut(tokenizer: Tokenizer, documents: Sequence[str], most: int | None) -> Documents:
    """Truncate each document to ``most`` tokens; None: keep them whole. Blocks."""
    if most is None:
        return Documents(tuple(documents))
    encoded = [tokenizer.encode(text, add_special=False, parse_special=False) for text in documents]
    return Documents(
        tuple(
            text if len(tokens) <= most else tokenizer.decode(tokens[:most])
            for text, tokens in zip(documents, encoded, strict=True)
        ),
        sum(max(0, len(tokens) - most) for tokens in encoded),
    )
