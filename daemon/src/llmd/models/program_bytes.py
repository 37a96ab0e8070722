"""Bytes of the weights of a program, by the memory that they take."""

from __future__ import annotations

from collections.abc import Iterable

from llmd.api.program import Program
from llmd.api.streaming import resident_weights, streamed_weights

BUFFERED_PARTS = 2
"""Streamed parts whose weights are on the device at a time: one is computed, the next is copied."""


def resident_bytes(program: Program) -> int:
    """Return the bytes of weights that stay on the device."""
    return _bytes_of(program, resident_weights(program))


def streamed_bytes(program: Program) -> int:
    """Return the bytes of weights that stay in main memory."""
    return sum(_bytes_of(program, indices) for indices in streamed_weights(program).values())


def stream_buffer_bytes(program: Program) -> int:
    """Return the bytes on the device for copies of streamed weights, without padding."""
    parts = [_bytes_of(program, indices) for indices in streamed_weights(program).values()]
    return max(parts, default=0) * min(BUFFERED_PARTS, len(parts))


def _bytes_of(program: Program, indices: Iterable[int]) -> int:
    return sum(program.weights[index].num_bytes for index in indices)
