"""Blocks of one KV group."""

from __future__ import annotations

from collections.abc import Iterable


class BlockPool:
    """Free blocks, some of them promised to sequences that were admitted and will take them later.

    Allocation and freeing are O(1). Invariant: ``free + used == num_blocks`` and ``reserved <= free``.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.reserved = 0
        self._free = list(range(num_blocks - 1, -1, -1))

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_available(self) -> int:
        """Blocks that are neither used nor promised."""
        return len(self._free) - self.reserved

    def reserve(self, count: int) -> None:
        """Promise ``count`` blocks; the caller has checked `num_available`."""
        assert count <= self.num_available, f"{count} blocks promised of {self.num_available}"
        self.reserved += count

    def unreserve(self, count: int) -> None:
        self.reserved -= count

    def take_reserved(self) -> int:
        """Hand out one promised block."""
        assert self.reserved > 0, "a block taken that nobody was promised"
        self.reserved -= 1
        return self._free.pop()

    def give_back(self, blocks: Iterable[int], *, keep_promise: bool) -> None:
        """Return blocks; with ``keep_promise`` the sequence may take as many again."""
        before = len(self._free)
        self._free.extend(blocks)
        if keep_promise:
            self.reserved += len(self._free) - before
