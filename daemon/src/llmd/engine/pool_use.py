"""What is in use of the KV pools of a model: blocks of tokens, and slots with states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from llmd.api.plan import KVGroup
from llmd.pager.pool import BlockPool


class PoolUse(msgspec.Struct, frozen=True):
    """The use of the pools: blocks are counted; of slots, which are larger, the bytes are."""

    blocks_used: int
    """Blocks that running sequences refer to."""
    blocks: int
    state_bytes_used: int
    """Bytes of the slots that running sequences refer to."""
    state_bytes: int


def pool_use(
    groups: Sequence[KVGroup], pools: Sequence[BlockPool], block_bytes: Callable[[int], int]
) -> PoolUse:
    """Count the pools of the groups; ``block_bytes`` returns the bytes of a block, or slot, of a group."""
    pairs = list(zip(groups, pools, strict=True))
    with_blocks = [pool for group, pool in pairs if group.kind != "state"]
    states = [(pool, block_bytes(group.id)) for group, pool in pairs if group.kind == "state"]
    return PoolUse(
        sum(map(_used, with_blocks)),
        sum(pool.num_blocks for pool in with_blocks),
        sum(_used(pool) * size for pool, size in states),
        sum(pool.num_blocks * size for pool, size in states),
    )


def _used(pool: BlockPool) -> int:
    return pool.num_blocks - pool.num_free
