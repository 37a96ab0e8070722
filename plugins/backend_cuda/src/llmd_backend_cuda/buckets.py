"""Sizes of steps that launches are made for."""

from __future__ import annotations

LARGEST_GRAPH = 64
"""Most rows of a step whose launches are captured as a graph."""

_STEP = 64


def row_buckets(most: int) -> tuple[int, ...]:
    """Return the numbers of rows that launches are made for, ascending, up to ``most``."""
    return tuple(sorted({bucket_of(count, most) for count in range(1, most + 1)}))


def bucket_of(count: int, most: int) -> int:
    """Return the bucket of a number of rows or output rows, which is at most ``most``; 0 of none."""
    if count == 0:
        return 0
    size = 1 << (count - 1).bit_length()
    return min(size if size <= _STEP else -(-count // _STEP) * _STEP, most)
