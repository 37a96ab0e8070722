"""Which experts are in slots of the device's memory, and which ones are copied there next.

Experts are numbered over all layers. A slot has room for a block of one size: each size of blocks has slots
in proportion to its bytes.

What is copied takes the bus from steps that read missing experts over it. So it is at most a fixed part of
what steps have read: however texts use experts, a step waits for the bus at most that much longer than
without any slots. An expert that a step has missed takes the slot of the one whose last use is longest ago,
if that is before the miss: a step that uses more experts than there are slots copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

COPIED_PART = 8
"""Copies are at most the bytes that steps have read from main memory, divided by this."""

Experts = NDArray[np.bool_]
"""A flag for each expert."""


class Move(msgspec.Struct, frozen=True):
    """An expert that is copied to a slot."""

    expert: int
    slot: int
    evicted: int
    """The expert that was there."""


class ExpertSlots:
    """Slots, their owners, and when steps used these."""

    def __init__(self, block_bytes: Sequence[int], budget_bytes: int) -> None:
        """Give slots to as many experts as ``budget_bytes`` have room for, evenly over all layers.

        ``block_bytes`` are the sizes of the blocks of all experts.
        """
        self._bytes = np.array(block_bytes, np.int64)
        count = len(self._bytes)
        self._slot_of = np.full(count, -1, np.int64)
        """By expert; -1: it has none."""
        self._used_at = np.zeros(count, np.int64)
        self._missed = np.zeros(count, np.bool_)
        self._now = 0
        self._left_bytes = 0
        self._next = 0
        owners, offsets, end = [], [], 0
        for size in dict.fromkeys(block_bytes):
            alike = np.flatnonzero(self._bytes == size)
            num_slots = min(len(alike), budget_bytes * len(alike) // int(self._bytes.sum()))
            owners.append(alike[np.arange(num_slots) * len(alike) // max(num_slots, 1)])
            offsets.append(end + size * np.arange(num_slots))
            end += size * num_slots
        self._owners = np.concatenate(owners or [np.empty(0, np.int64)])
        """By slot."""
        self.offsets: NDArray[np.int64] = np.concatenate(offsets or [np.empty(0, np.int64)])
        """By slot: where it is in the memory of all."""
        self.num_bytes = end
        """Bytes of all slots."""
        self._slot_of[self._owners] = np.arange(len(self._owners))

    def owners(self) -> Iterator[tuple[int, int]]:
        """Yield each expert that has a slot, with the slot."""
        yield from zip(self._owners.tolist(), range(len(self._owners)), strict=True)

    def bytes_of(self, experts: Experts) -> int:
        """Return the bytes of some experts."""
        return int(self._bytes[experts].sum())

    def note(self, used: Experts, missed: Experts) -> None:
        """Note which experts a step has used, the last one of those that were noted, and which it missed."""
        self._now += 1
        self._used_at[used] = self._now
        self._missed |= missed
        left = min(self._left_bytes, int(self._bytes.max(initial=0)))  # a step may allow less than one block
        self._left_bytes = left + self.bytes_of(missed) // COPIED_PART

    def moves(self) -> list[Move]:
        """Choose what is copied now, give it its slots, and forget the misses."""
        wanted = self._wanted()
        victims = {size: iter(self._oldest(size)) for size in set(self._bytes[wanted].tolist())}
        found = []
        for expert in wanted.tolist():
            size = int(self._bytes[expert])
            if size > self._left_bytes:
                break
            slot = next(victims[size], None)
            if slot is not None and self._used_at[self._owners[slot]] < self._used_at[expert]:
                found.append(self._move(expert, slot, size))
        self._missed[:] = False
        return found

    def _move(self, expert: int, slot: int, size: int) -> Move:
        evicted = int(self._owners[slot])
        self._slot_of[evicted], self._slot_of[expert] = -1, slot
        self._owners[slot] = expert
        self._left_bytes -= size
        self._next = expert + 1
        return Move(expert, slot, evicted)

    def _wanted(self) -> NDArray[np.int64]:
        """Return the experts that were missed and have no slot, the last missed first.

        Those of one step begin after the expert that was copied last, so that all layers have their turn.
        """
        wanted = np.flatnonzero(self._missed & (self._slot_of < 0))
        turns = (wanted - self._next) % max(len(self._bytes), 1)
        return wanted[np.lexsort((turns, -self._used_at[wanted]))]

    def _oldest(self, size: int) -> list[int]:
        """Return the slots for blocks of a size, that with the oldest use first."""
        slots = np.flatnonzero(self._bytes[self._owners] == size)
        order: list[int] = slots[np.argsort(self._used_at[self._owners[slots]], kind="stable")].tolist()
        return order
