"""The blocks of a KV pool, as cells of a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat

import msgspec

STATES = ("free", "cached", "used", "shared")
"""From the least to the most interesting; a cell shows the most interesting of its blocks."""


class Group(msgspec.Struct, frozen=True):
    """A group of layers that share a pool, as ``GET /llmd/kv`` tells it."""

    group: str | int
    block_len: int
    blocks: int
    free: int = 0
    cached: int = 0
    used: int = 0
    shared: int = 0
    map: Sequence[tuple[str, int]] = ()
    """States and the number of blocks that have them, in the order of the pool."""

    def count(self, state: str) -> int:
        """Return the number of blocks in a state."""
        return {"free": self.free, "cached": self.cached, "used": self.used, "shared": self.shared}[state]


def blocks_per_cell(blocks: int, cells: int) -> int:
    """Return how many blocks a cell stands for, so that all blocks fit."""
    return max(1, -(-blocks // max(cells, 1)))


def cells(group: Group, room: int) -> Iterator[str]:
    """Yield the state of each cell of a map with room for ``room`` cells."""
    ranks = {state: rank for rank, state in enumerate(STATES)}
    size = blocks_per_cell(group.blocks, room)
    states = chain.from_iterable(repeat(ranks.get(state, 0), count) for state, count in group.map)
    while cell := list(islice(states, size)):
        yield STATES[max(cell)]
