"""Two texts as one: what a cross-encoder reads of a query and a document."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class PairFrame(msgspec.Struct, frozen=True):
    """What a tokenizer writes before, between and after two texts.

    ``separators_of_first``: how many of the tokens between have the type of the first text; None where all tokens of a pair
    have one type.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    separators_of_first: int | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


class TokenPair(msgspec.Struct, frozen=True):
    """Token ids of two texts; from the place ``second_at`` on, tokens are of type 1 (None: of type 0 all)."""

    ids: list[int]
    second_at: int | None


def join(frame: PairFrame, first: Sequence[int], second: Sequence[int], max_len: int | None) -> TokenPair:
    """Both texts in their frame. Beyond ``max_len`` tokens the longer text loses its end, or both do where neither is short.

    As ``longest_first`` of transformers: on the way to equal lengths, the odd token stays with the longer text, or the second.
    """
    if max_len is not None:
        most = _lengths(len(first), len(second), max(0, max_len - frame.num_tokens))
        first, second = first[: most[0]], second[: most[1]]
    ids = [*frame.before, *first, *frame.between, *second, *frame.after]
    if frame.separators_of_first is None:
        return TokenPair(ids, None)
    return TokenPair(ids, len(frame.before) + len(first) + frame.separators_of_first)


def _lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of each text is kept."""
    if first + second <= room:
        return first, second
    if first > second:
        return _lengths(second, first, room)[::-1]
    kept = first if 2 * first <= room else room // 2
    return kept, room - kept
