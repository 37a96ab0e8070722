"""How many blocks sequences need at most."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN


def blocks_for(num_tokens: int, block_tokens: int = BLOCK_LEN) -> int:
    """Return the number of blocks that positions ``0 .. num_tokens - 1`` occupy."""
    return -(-num_tokens // block_tokens)


def ends_within(groups: Sequence[KVGroup], ends: Sequence[int], num_tokens: int) -> list[int]:
    """Return the end of the blocks of each group, but not behind those of ``num_tokens`` tokens."""
    pairs = zip(ends, groups, strict=True)
    return [min(end, blocks_for(num_tokens, group.block_tokens)) for end, group in pairs]


def most_blocks(group: KVGroup, total_len: int, chunk_len: int) -> int:
    """Return the most blocks of a group that a sequence of ``total_len`` tokens ever holds at once.

    A step writes at most ``chunk_len`` positions and reads the ``window - 1`` positions before them. Such a
    span may touch one block more than it could fill.
    """
    if group.window is None:
        return blocks_for(total_len, group.block_tokens)
    return min(blocks_for(total_len), blocks_for(group.window - 1 + chunk_len) + 1)


def most_forked(group: KVGroup, total_len: int, chunk_len: int, forks: int, shared_len: int) -> int:
    """Return the most blocks of a group that ``forks`` forks with ``shared_len`` common tokens hold at once.

    A step writes one position of each fork, and at most ``chunk_len`` further positions in total. Two forks
    that continue in a shared block both copy it before the block itself becomes free.
    """
    shared = shared_len // group.block_tokens
    most = shared + forks * (blocks_for(total_len, group.block_tokens) - shared)
    if group.window is not None:
        # Each fork spans its window and the positions it writes; these may touch a partial block at both
        # ends.
        most = min(most, forks * (blocks_for(group.window - 1) + 2) + blocks_for(chunk_len))
    return most + forks // 2
