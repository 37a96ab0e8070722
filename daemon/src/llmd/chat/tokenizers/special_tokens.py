"""Special tokens: control tokens such as ``<|im_end|>``, and a search for them in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from os.path import commonprefix

import msgspec


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for the longest of ``texts`` at a position; without texts it matches nothing.

    Alternatives are merged into a trie: vocabularies have thousands of special tokens with common prefixes.
    """
    wanted = sorted(set(filter(None, texts)))
    return re.compile(_trie(wanted) if wanted else r"(?!)")


def _trie(texts: list[str]) -> str:
    prefix = commonprefix(texts)  # noqa: RUF071 — character by character is intended
    rests = [text[len(prefix) :] for text in texts]
    branches = [_trie(list(group)) for _, group in groupby(filter(None, rests), key=lambda rest: rest[0])]
    if not branches:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{'|'.join(branches)}){'?' if '' in rests else ''}"


class SpecialToken(msgspec.Struct, frozen=True):
    """A token that is matched in text as a whole, before the model's own pieces."""

    text: str
    token_id: int
    lstrip: bool = False
    """The token includes the whitespace before its text."""
    rstrip: bool = False
    """The token includes the whitespace after its text."""


class Piece(msgspec.Struct, frozen=True):
    """A run of text, or one occurrence of ``token`` including the whitespace that it strips."""

    text: str
    token: SpecialToken | None = None


class SpecialTokenSplitter:
    """Splits text at tokens: the leftmost occurrence wins, then the longest."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        self._tokens = {token.text: token for token in tokens if token.text}
        self._pattern = any_of(self._tokens)

    def split(self, text: str) -> list[Piece]:
        """Return non-empty pieces whose concatenation is ``text``."""
        return [piece for piece in self._pieces(text) if piece.text]

    def _pieces(self, text: str) -> Iterator[Piece]:
        done = 0
        for match in self._pattern.finditer(text):
            token = self._tokens[match.group()]
            start, end = max(match.start(), done), match.end()
            if end <= done:
                continue  # this token is whitespace that the previous one stripped
            if token.lstrip:
                start = done + len(text[done:start].rstrip())
            if token.rstrip:
                end = _end_of_whitespace(text, end)
            yield Piece(text[done:start])
            yield Piece(text[start:end], token)
            done = end
        yield Piece(text[done:])


def _end_of_whitespace(text: str, start: int) -> int:
    match = re.compile(r"\s*").match(text, start)
    return match.end() if match else start
