"""Documents as a model gets them: whole, or cut where the request says how long they may be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.tokenizers.tokenizer import Tokenizer


class Documents(Struct, frozen=True):
    """``texts`` in their order; together they lack ``truncated_tokens``."""

    texts: tuple[str, ...]
    truncated_tokens: int = 0


def cut(tokenizer: Tokenizer, documents: Sequence[str], most: int | None) -> Documents:
    """The documents, none of them longer than ``most`` tokens where that is given. Blocks."""
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
