"""The states of sequences in state groups: slots, and snapshots of prefixes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.pager.pool import BlockPool, Key

NO_STATE = -1
"""In place of a slot: the state before the first token, which is zero."""

SNAPSHOT_LEN = 16 * BLOCK_LEN
"""Snapshots are kept at multiples of this length. A prefix hit loses half of it on average; a prompt takes at
most one more step for it."""

SNAPSHOTS = 2
"""Snapshots for each slot of the engine that a pool has room for while all of them run."""

Slots = list[list[int]]
"""Of one sequence, for each state group: the slot of the state at its valid length, then the slots that the
steps in flight write, in order. Empty if there is no state group."""


def most_slots(depth: int) -> int:
    """Return the most slots of a group that a sequence holds with ``depth`` steps in flight."""
    return depth + 1


class StateSlots:
    """The slots of state groups.

    A step reads the state of a sequence from one slot and writes it to another, which nothing has read
    before and which changes no more. Therefore a failed step can be repeated, a fork continues from the slot
    of its parent without a copy, and a slot can stay cached as a snapshot: the state after a prefix of some
    multiple of ``snapshot_len`` tokens, with the key of the block that ends there.
    """

    def __init__(self, pools: Sequence[BlockPool], depth: int, snapshot_len: int) -> None:
        """``depth`` is the largest number of steps of a sequence that are in flight at once."""
        self._pools = tuple(pools)
        self._most = most_slots(depth)
        self._snapshot_len = snapshot_len

    def begin(self, key: Key | None) -> Slots:
        """Return the slots of a sequence that begins with a cached prefix, or with no token (None)."""
        slots = []
        for pool in self._pools:
            slot = NO_STATE if key is None else pool.find(key)
            assert slot is not None, "the cache lost a snapshot between two lookups"
            slots.append([slot if slot == NO_STATE else pool.share(slot)])
        return slots

    def fork(self, parent: Slots) -> Slots:
        """Return the slots of a sequence that begins with the valid tokens of another."""
        for pool, (slot, *_) in zip(self._pools, parent, strict=True):
            if slot != NO_STATE:
                pool.share(slot)
        return [[slot] for slot, *_ in parent]

    def has_room(self, num_sequences: int) -> bool:
        """Return whether this many sequences can take part in the next step."""
        return all(pool.num_free >= num_sequences for pool in self._pools)

    def has_room_to_open(self, running: Iterable[Slots], new: Slots) -> bool:
        """Return whether a new sequence, and all that run, can have as many steps in flight as allowed."""
        sequences = [*running, new]
        return all(
            pool.num_free >= sum(self._most - _count(slots[index]) for slots in sequences)
            for index, pool in enumerate(self._pools)
        )

    def take(self, slots: Slots) -> None:
        """Take the slots that the next step of a sequence writes; the caller has checked `has_room`."""
        for pool, held in zip(self._pools, slots, strict=True):
            held.append(pool.take())

    def advance(self, slots: Slots, key: Key | None) -> None:
        """Record that the oldest step in flight is done; with a key, its state is a snapshot."""
        for pool, held in zip(self._pools, slots, strict=True):
            _give_back(pool, [held.pop(0)])
            if key is not None:
                pool.remember(held[0], key)

    def rewind(self, slots: Slots) -> None:
        """Give back what the steps in flight would have written."""
        for pool, held in zip(self._pools, slots, strict=True):
            _give_back(pool, held[1:])
            del held[1:]

    def drop(self, slots: Slots) -> None:
        """Give back all slots of a sequence."""
        for pool, held in zip(self._pools, slots, strict=True):
            _give_back(pool, held)

    def tables(self, sequences: Sequence[Slots]) -> Iterable[NDArray[np.int32]]:
        """Yield the slots that the last planned steps read and write, int32 ``[sequences, 2]`` per group."""
        for index in range(len(self._pools)):
            pairs = [([NO_STATE, *slots[index]])[-2:] for slots in sequences]
            yield np.array(pairs, np.int32).reshape(-1, 2)

    def check_integrity(self, sequences: Sequence[Slots]) -> None:
        """Assert that reference counts match the slots of all sequences, and that each pool is consistent."""
        for index, pool in enumerate(self._pools):
            pool.check_integrity()
            named = [slot for slots in sequences for slot in slots[index] if slot != NO_STATE]
            counts = np.bincount(np.array(named, np.int64), minlength=pool.num_blocks)
            assert counts.tolist() == [pool.references(slot) for slot in range(pool.num_blocks)]

    def is_border(self, length: int) -> bool:
        """Return whether the state at this length becomes a snapshot."""
        return length % self._snapshot_len == 0

    def fitting(self, start: int, count: int) -> int:
        """Shorten a chunk so that it ends at the last possible snapshot, if it passes one."""
        border = (start + count) // self._snapshot_len * self._snapshot_len
        return border - start if self._pools and border > start else count


def pool_slots(slots: int, depth: int) -> int:
    """Return the number of state slots for an engine with ``slots`` sequences, and for snapshots."""
    return slots * (most_slots(depth) + SNAPSHOTS)


def state_groups(groups: Sequence[KVGroup]) -> list[int]:
    """Return the indices of the state groups."""
    return [index for index, group in enumerate(groups) if group.kind == "state"]


def _count(held: Sequence[int]) -> int:
    return sum(slot != NO_STATE for slot in held)


def _give_back(pool: BlockPool, slots: Sequence[int]) -> None:
    pool.give_back(slot for slot in slots if slot != NO_STATE)
