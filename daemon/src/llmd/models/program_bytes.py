"""Bytes of the weights of a program, by the memory that they take."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from llmd.api.device import DeviceInfo
from llmd.api.expert_cache import expert_stacks
from llmd.api.program import Program
from llmd.api.streaming import may_stream, resident_weights, streamed_weights

BUFFERED_PARTS = 2
"""Streamed parts whose weights are on the device at a time: one is computed, the next is copied."""


def resident_bytes(program: Program) -> int:
    """Return the bytes of weights that stay on the device, and most bytes of the experts that do not."""
    return _bytes_of(program, resident_weights(program)) - absent_bytes(program)


def expert_bytes(program: Program) -> int:
    """Return the bytes of all matrices of experts."""
    return _bytes_of(program, expert_stacks(program))


def absent_bytes(program: Program) -> int:
    """Return the bytes of experts for which there is no room (`Program.expert_bytes`)."""
    if program.expert_bytes is None:
        return 0
    return max(0, expert_bytes(program) - program.expert_bytes)


def main_memory_expert_bytes(program: Program, info: DeviceInfo) -> int:
    """Return the bytes of main memory for experts: of all, if a device with its own memory has only some."""
    return expert_bytes(program) if program.expert_bytes is not None and may_stream(info) else 0


def with_expert_share(program: Program, share: float) -> Program:
    """Return a program that keeps this share of the bytes of its experts in memory."""
    num_bytes = expert_bytes(program)
    if share >= 1.0 or not num_bytes:
        return program
    return msgspec.structs.replace(program, expert_bytes=int(share * num_bytes))


def streamed_bytes(program: Program) -> int:
    """Return the bytes of weights that stay in main memory."""
    return sum(_bytes_of(program, indices) for indices in streamed_weights(program).values())


def stream_buffer_bytes(program: Program) -> int:
    """Return the bytes on the device for copies of streamed weights, without padding."""
    parts = [_bytes_of(program, indices) for indices in streamed_weights(program).values()]
    return max(parts, default=0) * min(BUFFERED_PARTS, len(parts))


def _bytes_of(program: Program, indices: Iterable[int]) -> int:
    return sum(program.weights[index].num_bytes for index in indices)
