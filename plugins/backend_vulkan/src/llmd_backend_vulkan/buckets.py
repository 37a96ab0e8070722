"""Sizes of steps that dispatches are recorded for."""

from __future__ import annotations

_STEP = 64


def bucket_of(count: int, most: int) -> int:
    """Return the bucket of a number of rows or output rows, which is at most ``most``; 0 of none."""
    if count == 0:
        return 0
    size = 1 << (count - 1).bit_length()
    return min(size if size <= _STEP else -(-count // _STEP) * _STEP, most)
