"""Join two texts into one input of a cross-encoder: a query and a document."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class PairFrame(msgspec.Struct, frozen=True):
    """Token ids that a tokenizer adds before, between and after two texts."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    separators_of_first: int | None = None
    """How many ids of ``between`` have the type of the first text; None: all tokens have one type."""

    @property
    def num_tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


class TokenPair(msgspec.Struct, frozen=True):
    """Token ids of two joined texts."""

    ids: list[int]
    second_at: int | None
    """Index of the first token of type 1; None: all tokens are of type 0."""


def join(frame: PairFrame, first: Sequence[int], second: Sequence[int], max_len: int | None) -> TokenPair:
    """Join two texts. Beyond ``max_len`` tokens, truncate the longer text, or both to equal lengths.

    This is ``longest_first`` of transformers: if the lengths cannot be equal, the longer text keeps the extra
    token, or the second text if both are equally long.
    """
    if max_len is not None:
        most = _lengths(len(first), len(second), max(0, max_len - frame.num_tokens))
        first, second = first[: most[0]], second[: most[1]]
    ids = [*frame.before, *first, *frame.between, *second, *frame.after]
    if frame.separators_of_first is None:
        return TokenPair(ids, None)
    return TokenPair(ids, len(frame.before) + len(first) + frame.separators_of_first)


def _lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of each text are kept."""
    if first + second <= room:
        return first, second
    if first > second:
        return _lengths(second, first, room)[::-1]
    kept = first if 2 * first <= room else room // 2
    return kept, room - kept
