"""Documents as the model gets them, truncated if the request limits their length."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.tokenizers.tokenizer import Tokenizer


class Documents(Struct, frozen=True):
    """The texts of documents, in order."""

    texts: tuple[str, ...]
    truncated_tokens: int = 0
    """Tokens that were cut off, in total."""


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
