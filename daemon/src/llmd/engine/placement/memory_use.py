"""What the stages of a model take of each memory, and what is left of it for KV pools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY, Device, LoadedWeights, StageLimits
from llmd.api.errors import MemoryBudgetError
from llmd.api.program import Program
from llmd.models.program_bytes import main_memory_expert_bytes, resident_bytes, streamed_bytes


class MemoryUse(msgspec.Struct, frozen=True):
    """What one or more stages take of a memory."""

    memory_id: str
    """`DeviceInfo.memory_id`."""
    weight_bytes: int
    """Weights in the formats of their devices."""
    step_bytes: int
    """Step buffers."""
    block_bytes: tuple[int, ...]
    """Bytes of one block of each KV group; 0 if the group has no layers there."""
    streamed_bytes: int = 0
    """Weights in main memory that are copied to this one in each step."""
    main_memory_expert_bytes: int = 0
    """Experts in main memory, of which this one has only some."""

    @classmethod
    def of(cls, device: Device, program: Program, weights: LoadedWeights, limits: StageLimits) -> Self:
        """Return what a stage will take."""
        return cls(
            device.info.memory_id,
            resident_bytes(program),
            weights.step_bytes(limits),
            tuple(weights.kv_bytes(g.id, limits.kv_dtype) if g.layers else 0 for g in program.groups),
            streamed_bytes(program),
            main_memory_expert_bytes(program, device.info),
        )

    def left_for_kv(self, free_bytes: int, limit_bytes: int | None) -> int:
        """Return the most bytes that KV pools may take.

        ``free_bytes`` of the memory are free with the weights loaded, ``limit_bytes`` are the most that these
        stages may take (None: no limit).

        Raises:
            MemoryBudgetError: weights and step buffers alone do not fit.
        """
        if self.step_bytes > free_bytes:
            raise MemoryBudgetError(
                f"step buffers of {format_bytes(self.step_bytes)} do not fit the {format_bytes(free_bytes)} "
                f"that are free{in_memory(self.memory_id)}",
                hint="lower --slots, --prefill-chunk or --max-ctx, or free memory",
            )
        left = free_bytes - self.step_bytes
        if limit_bytes is None:
            return left
        taken = self.weight_bytes + self.step_bytes
        if taken > limit_bytes:
            raise MemoryBudgetError(
                f"{format_bytes(self.weight_bytes)} of weights and {format_bytes(self.step_bytes)} of step "
                f"buffers exceed the limit of {format_bytes(limit_bytes)}{in_memory(self.memory_id)}",
                hint="raise the limit, quantise the model with --quant, or choose a smaller one",
            )
        return min(left, limit_bytes - taken)


def pool_bytes(num_blocks: Iterable[int], block_bytes: Iterable[int]) -> int:
    """Return the bytes of pools, given the number and the size of the blocks of each KV group."""
    return sum(count * size for count, size in zip(num_blocks, block_bytes, strict=True))


def by_memory(uses: Iterable[MemoryUse]) -> dict[str, MemoryUse]:
    """Add up uses of the same memory; streamed weights are in main memory, and so may experts be."""
    found: dict[str, MemoryUse] = {}
    for use in uses:
        other = found.get(use.memory_id)
        found[use.memory_id] = use if other is None else _sum(use, other)
        if host_bytes := use.streamed_bytes + use.main_memory_expert_bytes:
            in_main = MemoryUse(HOST_MEMORY, host_bytes, 0, (0,) * len(use.block_bytes))
            other = found.get(HOST_MEMORY)
            found[HOST_MEMORY] = in_main if other is None else _sum(in_main, other)
    return found


def least_by_memory(values: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the smallest value of each memory."""
    found: dict[str, int] = {}
    for memory_id, value in values:
        found[memory_id] = min(value, found.get(memory_id, value))
    return found


def in_memory(memory_id: str) -> str:
    """Name a memory in a sentence; main memory and all memories together (no id) need no name."""
    return f" in memory {memory_id}" if memory_id not in {"", HOST_MEMORY} else ""


def _sum(one: MemoryUse, other: MemoryUse) -> MemoryUse:
    blocks = zip(one.block_bytes, other.block_bytes, strict=True)
    return MemoryUse(
        one.memory_id,
        one.weight_bytes + other.weight_bytes,
        one.step_bytes + other.step_bytes,
        tuple(mine + theirs for mine, theirs in blocks),
        one.streamed_bytes + other.streamed_bytes,
        one.main_memory_expert_bytes + other.main_memory_expert_bytes,
    )
