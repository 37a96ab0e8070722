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


def num_full(group: KVGroup, length: int) -> int:
    """Return the number of blocks of a group with blocks that are full after ``length`` tokens.

    The block after them has nothing that a prefix of this length needs, if vectors stand for several tokens.
    """
    return length // group.block_tokens


def key_index(group: KVGroup, block: int) -> int:
    """Return which of a sequence's keys, one for each `BLOCK_LEN` tokens, is that of a full block."""
    return (block + 1) * group.block_tokens // BLOCK_LEN - 1


def longest_hit(groups: Sequence[KVGroup], pools: Sequence[BlockPool], keys: Sequence[Key]) -> int:
    """Return the longest prefix, in blocks, after which all groups have the blocks that the next token reads.

    A full-attention group needs all blocks, a window group only those of the last window, a state group a
    snapshot at the end. O(blocks x groups).
    """
    best = 0
    runs = [0] * len(groups)  # consecutive blocks present, up to the current one
    for num_keys, key in enumerate(keys, start=1):
        length = num_keys * BLOCK_LEN
        for index, (group, pool) in enumerate(zip(groups, pools, strict=True)):
            if length % group.block_tokens == 0:
                runs[index] = runs[index] + 1 if pool.find(key) is not None else 0
        needs = [num_full(group, length) - first_needed(group, length) for group in groups]
        short = [run < need for run, need in zip(runs, needs, strict=True)]
        if not any(short):
            best = num_keys
        elif any(lacks and _reads_all(group) for lacks, group in zip(short, groups, strict=True)):
            break
    return best


def _reads_all(group: KVGroup) -> bool:
    return group.window is None and group.kind != "state"
