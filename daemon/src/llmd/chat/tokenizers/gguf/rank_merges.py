"""Convert ranks to merges: tiktoken merges the lowest rank first, other libraries need a list of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def merges_of(ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield every pair of tokens that form a token, ordered by the rank of that token."""
    for token in sorted(ranks, key=ranks.__getitem__):
        halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        pairs = [(left, right) for left, right in halves if left in ranks and right in ranks]
        yield from sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
