"""Divide a memory budget into KV blocks for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.errors import MemoryBudgetError
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.pager.block_counts import blocks_for, most_blocks
from llmd.pager.states import pool_slots


class KVBudget(msgspec.Struct, frozen=True):
    """Sizes of the KV pools."""

    num_blocks: tuple[int, ...]
    """Blocks (or slots) of each group."""
    total_bytes: int
    max_tokens: int
    """Length of the longest sequence that fits."""


def plan_kv(
    groups: Sequence[KVGroup],
    block_bytes: Sequence[int],
    *,
    slots: int,
    context_len: int,
    chunk_len: int,
    budget_bytes: int,
    depth: int = 1,
) -> KVBudget:
    """Return pools for ``slots`` sequences of ``context_len`` tokens, or for as many as the budget allows.

    ``block_bytes[group]`` is the size of one block over all stages. All groups hold the same number of
    tokens, but window groups never get more than ``slots`` sequences can use. State groups always have the
    slots for ``slots`` sequences with ``depth`` steps in flight, and some for snapshots.

    Raises:
        MemoryBudgetError: the budget is too small for one block per group, or for the states.
    """

    def blocks(tokens: int) -> tuple[int, ...]:
        return tuple(
            pool_slots(slots, depth)
            if group.kind == "state"
            else min(slots * most_blocks(group, context_len, chunk_len), blocks_for(tokens))
            for group in groups
        )

    def cost(tokens: int) -> int:
        return sum(count * size for count, size in zip(blocks(tokens), block_bytes, strict=True))

    most = slots * blocks_for(context_len) * BLOCK_LEN
    if cost(most) > budget_bytes:
        most = _largest_within(cost, most // BLOCK_LEN, budget_bytes) * BLOCK_LEN
    if most == 0:
        raise MemoryBudgetError(
            f"the smallest KV pool takes {format_bytes(cost(BLOCK_LEN))} ({BLOCK_LEN} tokens), "
            f"the budget is {format_bytes(budget_bytes)}",
            hint="raise --kv-memory, or free memory",
        )
    return KVBudget(blocks(most), cost(most), min(most, context_len))


def _largest_within(cost: Callable[[int], int], max_blocks: int, budget_bytes: int) -> int:
    """Return the largest number of blocks up to ``max_blocks`` with a cost within the budget (bisection)."""
    low, high = 0, max_blocks
    while low < high:
        middle = (low + high + 1) // 2
        if cost(middle * BLOCK_LEN) <= budget_bytes:
            low = middle
        else:
            high = middle - 1
    return low
