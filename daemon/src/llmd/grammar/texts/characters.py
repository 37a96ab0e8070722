"""Sets of characters as ranges of code points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

Ranges = tuple[tuple[int, int], ...]
"""Pairs of first and last code points, sorted, with gaps between them."""

LAST = 0x10FFFF
CHARACTERS: Ranges = ((0, 0xD7FF), (0xE000, LAST))
"""All characters; surrogates are not characters."""
BEGIN: Ranges = ((LAST + 1, LAST + 1),)
END: Ranges = ((LAST + 2, LAST + 2),)
"""Marks before and after a text, which ``^`` and ``$`` match."""


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort and merge ranges, so that no two touch."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def inverted(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    edges = sorted({edge for first, last in (*CHARACTERS, *ranges) for edge in (first, last + 1)})
    return joined(
        (first, after - 1)
        for first, after in itertools.pairwise(edges)
        if contains(CHARACTERS, first) and not contains(ranges, first)
    )


def contains(ranges: Ranges, code: int) -> bool:
    """Return whether a code point is in the ranges."""
    return any(first <= code <= last for first, last in ranges)


def classes(sets: Sequence[Ranges]) -> list[Ranges]:
    """Partition all characters into classes that no set distinguishes."""
    edges = sorted(
        {edge for ranges in (CHARACTERS, *sets) for first, last in ranges for edge in (first, last + 1)}
    )
    found: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for first, after in itertools.pairwise(edges):
        if contains(CHARACTERS, first):
            found.setdefault(tuple(contains(one, first) for one in sets), []).append((first, after - 1))
    return [joined(ranges) for ranges in found.values()]
