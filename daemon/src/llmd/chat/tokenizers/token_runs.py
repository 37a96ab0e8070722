"""Convert texts of a request to token sequences that the engine can match."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.tokenizers.tokenizer import Tokenizer

Runs = tuple[tuple[int, ...], ...]


class Breakers(Struct, frozen=True):
    """Sequence breakers of DRY: tokens at which a repetition ends."""

    ids: tuple[int, ...] = ()
    """Tokens whose text contains a breaker."""
    runs: Runs = ()
    """Token sequences across which a breaker spans."""


def find_breakers(tokenizer: Tokenizer, vocabulary: Sequence[bytes], texts: Sequence[str]) -> Breakers:
    """Return the tokens that contain any of the texts, and the runs that a text spans.

    ``vocabulary`` has the bytes of each token from id 0. A run starts with a token that ends with a prefix of
    the text; the tokenizer encodes the rest, as in llama.cpp. This scans the whole vocabulary: call it in a
    thread.
    """
    ids: set[int] = set()
    runs: set[tuple[int, ...]] = set()
    for text in texts:
        whole = text.encode()
        ids.update(token for token, content in enumerate(vocabulary) if whole in content)
        for length in range(1, len(text)):
            beginning = text[:length].encode()
            rest = _continuation(tokenizer, vocabulary, text[length:])
            heads = (token for token, content in enumerate(vocabulary) if content.endswith(beginning))
            runs.update((head, *rest) for head in heads)
    return Breakers(tuple(sorted(ids)), tuple(sorted(run for run in runs if ids.isdisjoint(run))))


def find_bad_words(tokenizer: Tokenizer, vocabulary: Sequence[bytes], words: Sequence[str]) -> Runs:
    """Encode each word as at the start of a text, within a text, and after a space."""
    runs: dict[tuple[int, ...], None] = {}
    for word in words:
        bare = word.lstrip() or word
        for run in (
            tokenizer.encode_part(bare, parse_special=False, at_start=True),
            _continuation(tokenizer, vocabulary, bare),
            _continuation(tokenizer, vocabulary, f" {bare}"),
        ):
            runs[tuple(run)] = None
    return tuple(run for run in runs if run)


def _continuation(tokenizer: Tokenizer, vocabulary: Sequence[bytes], text: str) -> list[int]:
    """Encode a text that follows another, without the space that some tokenizers add before every text."""
    for before in ("\n", "a", "."):
        start = tokenizer.encode_part(before, parse_special=False, at_start=True)
        ids = tokenizer.encode_part(before + text, parse_special=False, at_start=True)
        rest = ids[len(start) :]
        if ids[: len(start)] == start and b"".join(vocabulary[i] for i in rest) == text.encode():
            return rest
    return tokenizer.encode_part(text, parse_special=False, at_start=False)
