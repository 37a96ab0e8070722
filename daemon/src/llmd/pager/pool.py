"""The block pool of one KV group."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from llmd.api.reports import BlockState

Key = bytes
"""Identifies the contents of a full block: all tokens up to its end (`llmd.pager.block_keys`)."""


class BlockPool:
    """Reference-counted blocks, whose contents stay cached after the last reference is gone.

    A block is used (it has references), cached (it has none, but its contents have a key) or empty. `take`
    returns an empty block, or evicts the least recently used cached one. Each operation on a block is O(1).
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._references = [0] * num_blocks
        self._keys: list[Key | None] = [None] * num_blocks
        self._by_key: dict[Key, int] = {}
        self._empty = list(range(num_blocks - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()  # least recently used first

    @property
    def num_free(self) -> int:
        """Number of blocks that can be taken: empty and cached ones."""
        return len(self._empty) + len(self._cached)

    def references(self, block: int) -> int:
        """Return how many sequences use a block."""
        return self._references[block]

    def take(self) -> int:
        """Return a block to write to, with one reference; the caller must have checked `num_free`."""
        if self._empty:
            block = self._empty.pop()
        else:
            block, _ = self._cached.popitem(last=False)
            self.forget(block)
        self._references[block] = 1
        return block

    def share(self, block: int) -> int:
        """Add a reference to a block; return the block."""
        if self._references[block] == 0:
            del self._cached[block]
        self._references[block] += 1
        return block

    def give_back(self, blocks: Iterable[int]) -> None:
        """Remove a reference from each block. Of the blocks that become free, the first are evicted first."""
        for block in blocks:
            self._references[block] -= 1
            if self._references[block] > 0:
                continue
            if self._keys[block] is None:
                self._empty.append(block)
            else:
                self._cached[block] = None

    def find(self, key: Key) -> int | None:
        """Return the block whose contents have this key; None if there is none."""
        return self._by_key.get(key)

    def remember(self, block: int, key: Key) -> None:
        """Set the key of a used block's contents, unless another block already has this key."""
        if self._keys[block] is None and key not in self._by_key:
            self._keys[block] = key
            self._by_key[key] = block

    def states(self) -> list[BlockState]:
        """Return the state of each block."""
        by_references: tuple[BlockState, ...] = ("free", "used", "shared")
        states = [by_references[min(count, 2)] for count in self._references]
        for block in self._cached:
            states[block] = "cached"
        return states

    def cached(self) -> list[tuple[Key, int]]:
        """Return the cached blocks with their keys, most recently used first."""
        return [(key, block) for block in reversed(self._cached) if (key := self._keys[block]) is not None]

    def adopt(self, key: Key) -> int | None:
        """Turn an empty block into a cached one with this key, the first to be evicted, and return it.

        The caller writes the contents. Return None, without a change, if no block is empty or the key exists.
        """
        if not self._empty or key in self._by_key:
            return None
        block = self._empty.pop()
        self._keys[block], self._by_key[key] = key, block
        self._cached[block] = None
        self._cached.move_to_end(block, last=False)
        return block

    def forget(self, block: int) -> None:
        """Drop the key of a block's contents."""
        key = self._keys[block]
        if key is not None:
            del self._by_key[key]
            self._keys[block] = None

    def check_integrity(self) -> None:
        """Assert that each block is in exactly one state, and that keys and blocks match."""
        used = {block for block, count in enumerate(self._references) if count > 0}
        states = [*used, *self._empty, *self._cached]
        assert sorted(states) == list(range(self.num_blocks)), "a block is lost, or in two states"
        assert all(count >= 0 for count in self._references), "a block was given back too often"
        named = {block: key for block, key in enumerate(self._keys) if key is not None}
        assert named == {block: key for key, block in self._by_key.items()}, "keys and blocks disagree"
        assert set(self._cached) == named.keys() - used, (
            "a cached block has no key, or a free one is not cached"
        )
