"""The blocks and states of each sequence in each KV group, and the length up to which they are valid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.plan import KVGroup
from llmd.api.reports import GroupBlocks
from llmd.api.step import BLOCK_LEN
from llmd.pager.block_counts import blocks_for, ends_within, most_blocks, most_forked
from llmd.pager.block_keys import BlockKeys
from llmd.pager.owned_blocks import OwnedBlocks
from llmd.pager.pool import BlockPool, Key
from llmd.pager.prefix import first_needed, key_index, longest_hit, num_full
from llmd.pager.states import SNAPSHOT_LEN, StateSlots, most_slots, state_groups

NO_BLOCK = -1
Copies = NDArray[np.int32]


class Pager:
    """Block tables of up to ``max_sequences`` sequences.

    Blocks are taken just before a step writes to them. When they run out, the caller frees a sequence. Its
    full blocks stay cached until they are needed, so that it, or another sequence with the same prefix, can
    find them again. Window groups release blocks that have left the window. Several steps may be in flight
    and complete in the order in which they were planned: a block that one of them still uses may already be
    assigned to a later one.

    The slots of state groups follow other rules (`StateSlots`). A cached prefix must end at a length for
    which all state groups have a snapshot.

    Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
    PagedAttention".
    """

    def __init__(
        self,
        groups: Sequence[KVGroup],
        num_blocks: Sequence[int],
        *,
        max_sequences: int,
        max_len: int,
        chunk_len: int,
        depth: int = 1,
        snapshot_len: int = SNAPSHOT_LEN,
    ) -> None:
        """``chunk_len`` is the largest number of tokens of a sequence that are in flight at once, ``depth``
        the largest number of its steps. ``snapshot_len`` is a multiple of `BLOCK_LEN`.
        """
        self._all_groups = tuple(groups)
        self._chunk_len = chunk_len
        self._depth = depth
        self.pools = tuple(BlockPool(count) for count in num_blocks)
        of_states = state_groups(groups)
        self._states = StateSlots([self.pools[index] for index in of_states], depth, snapshot_len)
        with_blocks = [index for index in range(len(groups)) if index not in of_states]
        self._groups = tuple(groups[index] for index in with_blocks)
        self._pools = tuple(self.pools[index] for index in with_blocks)
        widths = (blocks_for(max_len, group.block_tokens) for group in self._groups)
        self._tables = tuple(np.full((max_sequences, width), NO_BLOCK, np.int32) for width in widths)
        self._free_rows = list(range(max_sequences - 1, -1, -1))
        self._owned: dict[int, OwnedBlocks] = {}
        self._openings = itertools.count()
        self._copies: list[list[int]] = []  # of the step being planned
        self._copying: list[list[int]] = []  # of steps in flight

    @property
    def can_retract(self) -> bool:
        """Whether positions of a step can be given up: a state cannot be taken back to an earlier row."""
        return all(group.kind != "state" for group in self._all_groups)

    def fits_ever(self, total_len: int) -> bool:
        """Return whether a sequence of this length fits the pools if it runs alone."""
        return self.shortage(total_len) is None

    def shortage(self, total_len: int, forks: int = 1, shared_len: int = 0) -> tuple[int, int] | None:
        """Return (needed, existing) blocks, or slots, of the first group that is too small for ``forks``
        sequences.

        The sequences share their first ``shared_len`` tokens. None: they fit if nothing else runs.
        """
        for group, pool in zip(self._all_groups, self.pools, strict=True):
            if group.kind == "state":
                needed = forks * most_slots(self._depth)
            elif forks > 1:
                needed = most_forked(group, total_len, self._chunk_len, forks, shared_len)
            else:
                needed = most_blocks(group, total_len, self._chunk_len)
            if needed > pool.num_blocks:
                return needed, pool.num_blocks
        return None

    def open(
        self,
        sequence_id: int,
        tokens: Sequence[int],
        keys: BlockKeys | None,
        *,
        spare: int = 0,
        most_cached: int | None = None,
    ) -> int | None:
        """Begin a sequence with the cached prefix of its tokens; return the number of cached tokens.

        Return None, without a change, if no row is free, or if a group lacks the blocks for the tokens and
        ``spare`` more. The last token is never taken from the cache, because its output is needed; nor are
        tokens from ``most_cached`` on. ``tokens`` and their ``keys`` are referenced and may grow. Without
        keys, the sequence does not use the prefix cache.
        """
        if not self._free_rows:
            return None
        most = len(tokens) - 1 if most_cached is None else most_cached
        known = keys.of(tokens, most) if keys is not None else []
        known = known[: longest_hit(self._all_groups, self.pools, known)]
        length = len(known) * BLOCK_LEN
        slots = self._states.begin(known[-1] if known else None)
        owned = OwnedBlocks(
            next(self._openings), self._free_rows[-1], tokens, keys, length, length, [], [], slots
        )
        self._take_cached(owned, known)
        running = (one.slots for one in self._owned.values())
        fits = self._has_room(owned, len(tokens) - length, spare)
        if not (fits and self._states.has_room_to_open(running, slots)):
            self._drop_all(owned)
            return None
        self._free_rows.pop()
        self._owned[sequence_id] = owned
        return owned.length

    def fork(self, parent_id: int, child_id: int, tokens: Sequence[int]) -> bool:
        """Begin a sequence with the valid tokens of its parent; blocks are shared until one of them writes.

        A step of the parent that is in flight may write to the last shared block, after the valid tokens. It
        completes before the child's copy is made.

        Return False, without a change, if no row is free.
        """
        if not self._free_rows:
            return False
        parent = self._owned[parent_id]
        child = OwnedBlocks(
            next(self._openings),
            self._free_rows.pop(),
            tokens,
            None if parent.keys is None else parent.keys.fork(parent.length),
            parent.length,
            parent.length,
            parent.first.copy(),
            ends_within(self._groups, parent.end, parent.length),
            self._states.fork(parent.slots),
        )
        for index, (pool, table) in enumerate(zip(self._pools, self._tables, strict=True)):
            part = slice(child.first[index], child.end[index])
            table[child.row, part] = table[parent.row, part]
            for block in table[child.row, part].tolist():
                pool.share(block)
        self._owned[child_id] = child
        return True

    def length(self, sequence_id: int) -> int:
        """Return the number of tokens with valid keys and values."""
        return self._owned[sequence_id].length

    def planned(self, sequence_id: int) -> int:
        """Return the number of tokens with valid keys and values once the steps in flight are done."""
        return self._owned[sequence_id].planned

    def num_blocks(self, sequence_id: int) -> int:
        """Return the number of blocks and slots that a sequence refers to, including those that it shares."""
        return self._owned[sequence_id].num_blocks

    def owns(self, sequence_id: int) -> bool:
        """Return whether a sequence was begun and not freed."""
        return sequence_id in self._owned

    def opening(self, sequence_id: int) -> int:
        """Return a number that differs each time a sequence is begun, by `open` or `fork`."""
        return self._owned[sequence_id].opening

    def prepare(self, sequence_id: int, num_tokens: int) -> bool:
        """Plan the next ``num_tokens`` positions: take the blocks to write to. The length does not change.

        All of them are in one step. Return False, without a change, if too few blocks are free.
        """
        owned = self._owned[sequence_id]
        if not self._has_room(owned, num_tokens) or (owned.slots and not self._states.has_room(1)):
            return False
        self._take(owned, num_tokens)
        return True

    def prepare_all(self, spans: Mapping[int, int]) -> bool:
        """Like `prepare` for several sequences, given as {id: number of positions}: all of them or none."""
        several = [(self._owned[sequence_id], count) for sequence_id, count in spans.items()]
        if not self._states.has_room(len(several)):
            return False
        for index, pool in enumerate(self._pools):
            if (
                sum(self._needed(owned, index, owned.planned + count) for owned, count in several)
                > pool.num_free
            ):
                return False
        for owned, count in several:
            self._take(owned, count)
        return True

    def fitting(self, start: int, count: int) -> int:
        """Return how many of ``count`` tokens from ``start`` on a chunk should have, to leave a snapshot."""
        return self._states.fitting(start, count)

    def copies(self) -> Copies:
        """Return the block copies of the step just planned, int32 ``[C, 3]`` of (group, source, target).

        The sources keep their contents until `copied`, so that a failed step can be repeated.
        """
        copies = np.array(self._copies, np.int32).reshape(-1, 3)
        self._copies.clear()
        self._copying += copies.tolist()
        return copies

    def copied(self, copies: Copies) -> None:
        """Record that the step with these copies is done."""
        del self._copying[: len(copies)]
        for index, source, _ in copies.tolist():
            self.pools[index].give_back([source])

    def rewind(self) -> None:
        """Roll back all steps in flight after a failure; their positions and copies are planned again."""
        self._copies[:0] = self._copying
        self._copying.clear()
        for owned in self._owned.values():
            owned.planned = owned.length
            self._states.rewind(owned.slots)

    def advance(self, sequence_id: int, num_tokens: int, opening: int | None = None) -> bool:
        """Mark the ``num_tokens`` positions of a step as valid, after all stages have written them.

        With ``opening``, return False, without a change, if the sequence was freed or begun again since.
        """
        owned = self._owned.get(sequence_id)
        if owned is None or opening not in (None, owned.opening):
            return False
        before = owned.length
        owned.length += num_tokens
        self._remember(owned, before)
        if owned.slots:
            self._states.advance(owned.slots, self._snapshot_key(owned))
        for index, group in enumerate(self._groups):
            self._drop(owned, index, first_needed(group, owned.length))
        return True

    def retract(self, sequence_id: int) -> None:
        """Give up the planned positions of a sequence beyond its valid ones, and free their blocks.

        Only for a sequence without a step in flight, and if `can_retract`.
        """
        assert self.can_retract
        owned = self._owned[sequence_id]
        owned.planned = owned.length
        for index, (pool, table) in enumerate(zip(self._pools, self._tables, strict=True)):
            kept = blocks_for(owned.length, self._groups[index].block_tokens)
            part = slice(kept, owned.end[index])
            if part.start < part.stop:
                pool.give_back(reversed(table[owned.row, part].tolist()))
                table[owned.row, part] = NO_BLOCK
                owned.end[index] = kept

    def free(self, sequence_id: int) -> None:
        """End the sequence and release its blocks."""
        self._free_rows.append(self._owned[sequence_id].row)
        self._drop_all(self._owned.pop(sequence_id))

    def cached(self) -> list[tuple[int, Key, int]]:
        """Return (group, key, block) of all cached blocks, most recently used first; groups alternate."""
        turns = itertools.zip_longest(*(pool.cached() for pool in self.pools))
        return [(index, *entry) for turn in turns for index, entry in enumerate(turn) if entry is not None]

    def blocks(self) -> tuple[GroupBlocks, ...]:
        """Return the state of every block of every group. Reads each of them: seldom, between steps."""
        return tuple(
            GroupBlocks(
                group.id,
                None if group.kind == "state" else group.block_tokens,
                tuple((state, sum(1 for _ in run)) for state, run in itertools.groupby(pool.states())),
            )
            for group, pool in zip(self._all_groups, self.pools, strict=True)
        )

    def tables(self, sequence_ids: Sequence[int]) -> tuple[NDArray[np.int32], ...]:
        """Return the block tables of sequences, in order: int32 ``[len(sequence_ids), width]`` per group.

        ``width`` is the number of blocks of the longest of them, not that of the context window. State groups
        have the slots of the step just planned instead (see `Step.block_tables`).
        """
        owned = [self._owned[sequence_id] for sequence_id in sequence_ids]
        rows = [one.row for one in owned]
        widths = [max((one.end[index] for one in owned), default=0) for index in range(len(self._tables))]
        blocks = (table[rows, :width] for table, width in zip(self._tables, widths, strict=True))
        slots = iter(self._states.tables([one.slots for one in owned]))
        return tuple(next(slots if group.kind == "state" else blocks) for group in self._all_groups)

    def check_integrity(self) -> None:
        """Assert that reference counts match tables, slots and copies, and that each pool is consistent."""
        self._states.check_integrity([owned.slots for owned in self._owned.values()])
        for group, pool, table in zip(self._groups, self._pools, self._tables, strict=True):
            pool.check_integrity()
            copies = (*self._copies, *self._copying)
            sources = [source for index, source, _ in copies if index == group.id]
            named = np.bincount([*table[table != NO_BLOCK], *sources], minlength=pool.num_blocks)
            assert named.tolist() == [pool.references(block) for block in range(pool.num_blocks)]

    def _take_cached(self, owned: OwnedBlocks, keys: Sequence[Key]) -> None:
        for group, pool, table in zip(self._groups, self._pools, self._tables, strict=True):
            length = len(keys) * BLOCK_LEN
            first, end = first_needed(group, length), num_full(group, length)
            for place in range(first, end):
                block = pool.find(keys[key_index(group, place)])
                assert block is not None, "the cache lost a block between two lookups"
                table[owned.row, place] = pool.share(block)
            owned.first.append(first)
            owned.end.append(end)

    def _has_room(self, owned: OwnedBlocks, num_tokens: int, spare: int = 0) -> bool:
        """Return whether there are blocks for ``num_tokens`` more tokens, ``chunk_len`` at a time."""
        total = owned.planned + num_tokens
        for index, pool in enumerate(self._pools):
            if self._needed(owned, index, total) + spare > pool.num_free:
                return False
        return True

    def _needed(self, owned: OwnedBlocks, index: int, total: int) -> int:
        """Return how many blocks of a group must be free for ``total`` tokens."""
        held, group = owned.end[index] - owned.first[index], self._groups[index]
        most = most_blocks(group, total, self._chunk_len)
        new = blocks_for(total, group.block_tokens) - owned.end[index]
        return min(new, most - held) + self._is_shared(owned, index)

    def _take(self, owned: OwnedBlocks, num_tokens: int) -> None:
        """Take the blocks of the next positions; the caller has checked that there are enough."""
        for index, group in enumerate(self._groups):
            self._own_last(owned, index)
            self._extend(owned, index, blocks_for(owned.planned + num_tokens, group.block_tokens))
        if owned.slots:
            self._states.take(owned.slots)
        owned.planned += num_tokens

    def _is_shared(self, owned: OwnedBlocks, index: int) -> bool:
        """Return whether the next token is written to a block that another sequence also uses."""
        last, block_tokens = owned.end[index] - 1, self._groups[index].block_tokens
        begun = owned.planned % block_tokens != 0 and owned.planned // block_tokens == last
        return begun and self._pools[index].references(int(self._tables[index][owned.row, last])) > 1

    def _own_last(self, owned: OwnedBlocks, index: int) -> None:
        """Copy the block that the next token is written to, if another sequence also uses it."""
        if self._is_shared(owned, index):
            row, last = self._tables[index][owned.row], owned.end[index] - 1
            source, target = int(row[last]), self._pools[index].take()
            row[last] = target
            self._copies.append([self._groups[index].id, source, target])

    def _extend(self, owned: OwnedBlocks, index: int, end: int) -> None:
        row = self._tables[index][owned.row]
        for place in range(owned.end[index], end):
            row[place] = self._pools[index].take()
        owned.end[index] = max(owned.end[index], end)

    def _remember(self, owned: OwnedBlocks, before: int) -> None:
        """Set the keys of the blocks that have become full since the length was ``before``."""
        if owned.keys is None or owned.length // BLOCK_LEN == before // BLOCK_LEN:
            return
        keys = owned.keys.of(owned.tokens, owned.length)
        for group, pool, table in zip(self._groups, self._pools, self._tables, strict=True):
            for place in range(num_full(group, before), num_full(group, owned.length)):
                pool.remember(int(table[owned.row, place]), keys[key_index(group, place)])

    def _snapshot_key(self, owned: OwnedBlocks) -> Key | None:
        """Return the key of the state at the sequence's length; None if it is no snapshot."""
        if owned.keys is None or not self._states.is_border(owned.length):
            return None
        return owned.keys.of(owned.tokens, owned.length)[-1]

    def _drop(self, owned: OwnedBlocks, index: int, first_kept: int) -> None:
        """Release the sequence's blocks before ``first_kept``; the last of them are evicted first."""
        part = slice(owned.first[index], first_kept)
        if part.start >= part.stop:
            return
        row = self._tables[index][owned.row]
        self._pools[index].give_back(reversed(row[part].tolist()))
        row[part] = NO_BLOCK
        owned.first[index] = first_kept

    def _drop_all(self, owned: OwnedBlocks) -> None:
        for index in range(len(self._pools)):
            self._drop(owned, index, owned.end[index])
        self._states.drop(owned.slots)
