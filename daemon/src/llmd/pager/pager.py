"""Which blocks each sequence owns in each KV group, and how far its keys and values are valid."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.pager.pool import BlockPool

NO_BLOCK = -1


def blocks_for(num_tokens: int) -> int:
    """Blocks that ``num_tokens`` positions from 0 occupy."""
    return -(-num_tokens // BLOCK_LEN)


def most_blocks(group: KVGroup, total_len: int, chunk_len: int) -> int:
    """The most blocks of a group that a sequence of ``total_len`` tokens ever holds at once.

    A step writes at most ``chunk_len`` positions and reads ``window - 1`` before them; such a span of
    positions touches one block more than it fills.
    """
    if group.window is None:
        return blocks_for(total_len)
    return min(blocks_for(total_len), blocks_for(group.window - 1 + chunk_len) + 1)


class _Owned(msgspec.Struct):
    """One sequence: its row in the tables, valid length, and per group (first block kept, end, still promised)."""

    row: int
    length: int
    first: list[int]
    end: list[int]
    promised: list[int]


class Pager:
    """Block tables of up to ``max_sequences`` sequences.

    A sequence is admitted with the longest it may become; what it needs for that is promised at once, so that a
    running sequence never runs out. Window groups give back blocks that fell out of the window.

    Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with PagedAttention".
    """

    def __init__(
        self,
        groups: Sequence[KVGroup],
        num_blocks: Sequence[int],
        *,
        max_sequences: int,
        max_len: int,
        chunk_len: int,
    ) -> None:
        self._groups = tuple(groups)
        self._chunk_len = chunk_len
        self.pools = tuple(BlockPool(count) for count in num_blocks)
        shape = (max_sequences, blocks_for(max_len))
        self._tables = tuple(np.full(shape, NO_BLOCK, np.int32) for _ in groups)
        self._free_rows = list(range(max_sequences - 1, -1, -1))
        self._owned: dict[int, _Owned] = {}

    def fits_ever(self, total_len: int) -> bool:
        """Whether an empty pager could admit a sequence of this length."""
        return all(
            most_blocks(group, total_len, self._chunk_len) <= pool.num_blocks
            for group, pool in zip(self._groups, self.pools, strict=True)
        )

    def admit(self, sequence_id: int, total_len: int) -> bool:
        """Promise the blocks that the sequence will ever need. False, and nothing changed, where too few are left."""
        needs = [most_blocks(group, total_len, self._chunk_len) for group in self._groups]
        short = any(need > pool.num_available for need, pool in zip(needs, self.pools, strict=True))
        if short or not self._free_rows:
            return False
        for need, pool in zip(needs, self.pools, strict=True):
            pool.reserve(need)
        zeros = [0] * len(needs)
        self._owned[sequence_id] = _Owned(self._free_rows.pop(), 0, zeros.copy(), zeros, needs)
        return True

    def length(self, sequence_id: int) -> int:
        """Tokens whose keys and values are valid."""
        return self._owned[sequence_id].length

    def prepare(self, sequence_id: int, num_tokens: int) -> None:
        """Take the blocks that the next ``num_tokens`` positions are written to; the length stays."""
        owned = self._owned[sequence_id]
        end = blocks_for(owned.length + num_tokens)
        for index, (pool, table) in enumerate(zip(self.pools, self._tables, strict=True)):
            while owned.end[index] < end:
                table[owned.row, owned.end[index]] = pool.take_reserved()
                owned.promised[index] -= 1
                owned.end[index] += 1

    def advance(self, sequence_id: int, num_tokens: int) -> None:
        """Make ``num_tokens`` more positions valid, once every stage has written them."""
        owned = self._owned[sequence_id]
        owned.length += num_tokens
        for index, group in enumerate(self._groups):
            if group.window is not None:
                first_needed = max(0, owned.length - group.window + 1) // BLOCK_LEN
                self._drop(owned, index, first_needed, keep_promise=True)

    def free(self, sequence_id: int) -> None:
        """Return every block and promise of the sequence."""
        owned = self._owned.pop(sequence_id)
        for index, pool in enumerate(self.pools):
            self._drop(owned, index, owned.end[index], keep_promise=False)
            pool.unreserve(owned.promised[index])
        self._free_rows.append(owned.row)

    def tables(self, sequence_ids: Sequence[int]) -> tuple[NDArray[np.int32], ...]:
        """Block tables of the sequences in order, one int32 ``[len(sequence_ids), width]`` for each group."""
        rows = [self._owned[sequence_id].row for sequence_id in sequence_ids]
        return tuple(table[rows] for table in self._tables)

    def check_integrity(self) -> None:
        """Assert that no block is owned twice and that every pool adds up."""
        for index, (pool, table) in enumerate(zip(self.pools, self._tables, strict=True)):
            used = table[table != NO_BLOCK]
            assert len(set(used.tolist())) == used.size, "a block is owned twice"
            assert used.size + pool.num_free == pool.num_blocks, "blocks were lost"
            assert pool.reserved == sum(owned.promised[index] for owned in self._owned.values())

    def _drop(self, owned: _Owned, index: int, first_kept: int, *, keep_promise: bool) -> None:
        """Give back the sequence's blocks before ``first_kept``."""
        part = slice(owned.first[index], first_kept)
        if part.start >= part.stop:
            return
        row = self._tables[index][owned.row]
        dropped = row[part].tolist()
        row[part] = NO_BLOCK
        self.pools[index].give_back(dropped, keep_promise=keep_promise)
        owned.first[index] = first_kept
        owned.promised[index] += len(dropped) if keep_promise else 0
