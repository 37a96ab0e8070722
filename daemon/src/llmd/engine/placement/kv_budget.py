"""Divide the budgets of one or more memories into KV blocks for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import Device
from llmd.api.errors import MemoryBudgetError
from llmd.api.messages import Load
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.engine.placement.memory_use import MemoryUse, by_memory, in_memory, least_by_memory, pool_bytes
from llmd.pager.block_counts import blocks_for, most_blocks
from llmd.pager.states import pool_slots

NO_LIMIT = 1 << 62
"""A budget beyond any machine."""


class KVMemory(msgspec.Struct, frozen=True):
    """A memory that holds KV blocks."""

    memory_id: str
    block_bytes: tuple[int, ...]
    """Bytes of one block of each group, over all stages in this memory."""
    budget_bytes: int
    """Most bytes for all blocks."""


class KVBudget(msgspec.Struct, frozen=True):
    """Sizes of the KV pools."""

    num_blocks: tuple[int, ...]
    """Blocks (or slots) of each group."""
    total_bytes: int
    """Bytes of all pools, in all memories."""
    max_tokens: int
    """Length of the longest sequence that fits."""


def kv_memories(load: Load, stages: Sequence[tuple[Device, MemoryUse]]) -> list[KVMemory]:
    """Return the memories of stages whose weights are loaded, with the share of each that KV pools get.

    It is half of what weights and step buffers leave, or all of it where the user has set a limit: of the
    device (`DeviceOptions.memory_bytes`), or of all pools together (`Load.kv_memory`).

    Raises:
        MemoryBudgetError: step buffers do not fit, or a limit is below weights and step buffers.
    """
    free = least_by_memory((use.memory_id, device.free_bytes()) for device, use in stages)
    options = ((use.memory_id, load.options_of(device.info.name)) for device, use in stages)
    limits = least_by_memory(
        (name, one.memory_bytes) for name, one in options if one.memory_bytes is not None
    )
    memories = []
    for name, use in by_memory(use for _, use in stages).items():
        if name not in free:
            continue  # main memory with streamed weights alone
        left = use.left_for_kv(free[name], limits.get(name))
        shared = load.kv_memory is None and name not in limits
        memories.append(KVMemory(name, use.block_bytes, left // 2 if shared else left))
    return memories


def plan_kv(
    groups: Sequence[KVGroup],
    memories: Sequence[KVMemory],
    *,
    slots: int,
    context_len: int,
    chunk_len: int,
    depth: int = 1,
    total_bytes: int | None = None,
) -> KVBudget:
    """Return pools for ``slots`` sequences of ``context_len`` tokens, or for as many tokens as fit.

    Pools in a memory take at most its budget, all pools together at most ``total_bytes``, if given. All
    groups hold the same number of tokens, but window groups never get more than ``slots`` sequences can use.
    State groups always have the slots for ``slots`` sequences with ``depth`` steps in flight, and some for
    snapshots.

    Raises:
        MemoryBudgetError: a budget is too small for one block per group, or for the states.
    """
    summed = tuple(map(sum, zip(*(memory.block_bytes for memory in memories), strict=True)))
    everything = KVMemory("", summed, NO_LIMIT if total_bytes is None else total_bytes)

    def blocks(length: int) -> tuple[int, ...]:
        return tuple(
            pool_slots(slots, depth)
            if group.kind == "state"
            else min(slots * most_blocks(group, context_len, chunk_len), _blocks(group, length, slots))
            for group in groups
        )

    def too_small(length: int) -> KVMemory | None:
        counts = blocks(length)
        return next(
            (m for m in (*memories, everything) if pool_bytes(counts, m.block_bytes) > m.budget_bytes), None
        )

    most = _largest(lambda length: too_small(length) is None, slots * blocks_for(context_len))
    if most == 0 and (short := too_small(1)):
        needed = format_bytes(pool_bytes(blocks(1), short.block_bytes))
        raise MemoryBudgetError(
            f"the smallest KV pool takes {needed}{in_memory(short.memory_id)} ({BLOCK_LEN} tokens), "
            f"the budget is {format_bytes(short.budget_bytes)}",
            hint="raise --kv-memory, or free memory",
        )
    return KVBudget(blocks(most), pool_bytes(blocks(most), summed), min(most * BLOCK_LEN, context_len))


def _blocks(group: KVGroup, length: int, slots: int) -> int:
    """Return the blocks of a group for all sequences together, of ``length`` times `BLOCK_LEN` tokens.

    Each of them may begin a block that is longer than `BLOCK_LEN`.
    """
    if group.block_tokens == BLOCK_LEN:
        return length
    return blocks_for(length * BLOCK_LEN, group.block_tokens) + slots


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to ``most`` that fits (bisection); 0 if not even 1 does."""
    low, high = (most, most) if fits(most) else (0, most)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
