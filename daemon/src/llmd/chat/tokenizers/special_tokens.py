"""Special tokens: control tokens such as ``<|im_end|>``, and where their text occurs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from os.path import commonprefix

import msgspec


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern for the longest of ``texts`` that stands at a place; it matches nothing where there are none.

    Alternatives are merged into a trie: vocabularies hold thousands of special tokens that begin alike.
    """
    wanted = sorted(set(filter(None, texts)))
    return re.compile(_trie(wanted) if wanted else r"(?!)")


def _trie(texts: list[str]) -> str:
    prefix = commonprefix(texts)  # noqa: RUF071 — characters are what is meant
    rests = [text[len(prefix) :] for text in texts]
    branches = [_trie(list(group)) for _, group in groupby(filter(None, rests), key=lambda rest: rest[0])]
    if not branches:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{'|'.join(branches)}){'?' if '' in rests else ''}"


class SpecialToken(msgspec.Struct, frozen=True):
    """A token that is matched in text as a whole, before the model's own pieces.

    ``lstrip`` and ``rstrip``: the token swallows the whitespace before and after its text.
    """

    text: str
    token_id: int
    lstrip: bool = False
    rstrip: bool = False


class Piece(msgspec.Struct, frozen=True):
    """A run of text, or one occurrence of ``token`` together with the whitespace that it swallows."""

    text: str
    token: SpecialToken | None = None


class SpecialTokenSplitter:
    """Splits text at tokens: the leftmost occurrence wins, the longest where several begin together."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        self._tokens = {token.text: token for token in tokens if token.text}
        self._pattern = any_of(self._tokens)

    def split(self, text: str) -> list[Piece]:
        """Pieces whose texts join to ``text``; none is empty."""
        return [piece for piece in self._pieces(text) if piece.text]

    def _pieces(self, text: str) -> Iterator[Piece]:
        done = 0
        for match in self._pattern.finditer(text):
            token = self._tokens[match.group()]
            start, end = max(match.start(), done), match.end()
            if end <= done:
                continue  # the token before swallowed this one, which is whitespace
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
