"""The length of the cached prefix of a prompt, if KV groups need different blocks of it."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.pager.pool import BlockPool, Key


def first_needed(group: KVGroup, length: int) -> int:
    """Return the first block that the token at position ``length`` reads.

    In a state group this is the last block before it, whose key is that of the state.
    """
    if group.kind == "state":
        return max(0, length // BLOCK_LEN - 1)
    return 0 if group.window is None else max(0, length - group.window + 1) // BLOCK_LEN


def longest_hit(groups: Sequence[KVGroup], pools: Sequence[BlockPool], keys: Sequence[Key]) -> int:
    """Return the longest prefix, in blocks, after which all groups have the blocks that the next token reads.

    A full-attention group needs all blocks, a window group only those of the last window, a state group a
    snapshot at the end. O(blocks x groups).
    """
    best = 0
    runs = [0] * len(groups)  # consecutive blocks present, up to the current one
    for num_blocks, key in enumerate(keys, start=1):
        runs = [run + 1 if pool.find(key) is not None else 0 for run, pool in zip(runs, pools, strict=True)]
        needs = [num_blocks - first_needed(group, num_blocks * BLOCK_LEN) for group in groups]
        if all(run >= need for run, need in zip(runs, needs, strict=True)):
            best = num_blocks
        elif any(run == 0 and _reads_all(group) for run, group in zip(runs, groups, strict=True)):
            break
    return best


def _reads_all(group: KVGroup) -> bool:
    return group.window is None and group.kind != "state"
