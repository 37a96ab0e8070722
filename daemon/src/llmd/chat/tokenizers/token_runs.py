"""Texts that a request names, as the tokens that the engine can look for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.tokenizers.tokenizer import Tokenizer

Runs = tuple[tuple[int, ...], ...]


class Breakers(Struct, frozen=True):
    """Where repetitions end: at a token of ``ids``, whose text holds a breaker, or after one of ``runs``."""

    ids: tuple[int, ...] = ()
    runs: Runs = ()


def find_breakers(tokenizer: Tokenizer, vocabulary: Sequence[bytes], texts: Sequence[str]) -> Breakers:
    """The tokens that hold any of the texts, and the runs that a text lies across.

    ``vocabulary`` has the bytes of each token from id 0. A run begins with a token that ends with a beginning of the
    text; the rest of it is taken as the tokenizer writes it, as llama.cpp does. This reads the whole vocabulary: call it
    in a thread.
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
    """How the tokenizer writes each word at the beginning of a text, within one, and after a space."""
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
    """How the tokenizer writes a text after another, without the space that some put before every text."""
    for before in ("\n", "a", "."):
        start = tokenizer.encode_part(before, parse_special=False, at_start=True)
        ids = tokenizer.encode_part(before + text, parse_special=False, at_start=True)
        rest = ids[len(start) :]
        if ids[: len(start)] == start and b"".join(vocabulary[i] for i in rest) == text.encode():
            return rest
    return tokenizer.encode_part(text, parse_special=False, at_start=False)
