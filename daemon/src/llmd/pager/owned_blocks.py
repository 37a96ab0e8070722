"""The part of the KV pools that one sequence refers to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.pager.block_keys import BlockKeys
from llmd.pager.states import NO_STATE, Slots


class OwnedBlocks(msgspec.Struct):
    """The state of one sequence."""

    opening: int
    row: int
    """Row in the block tables."""
    tokens: Sequence[int]
    """All tokens; the list grows outside the pager."""
    keys: BlockKeys | None
    length: int
    """Number of tokens with valid keys and values."""
    planned: int
    """The length once the steps in flight are done."""
    first: list[int]
    """For each group with blocks: index of the first block that is still used."""
    end: list[int]
    """For each group with blocks: end of the range of blocks."""
    slots: Slots

    @property
    def num_blocks(self) -> int:
        """Number of blocks and slots, including those that other sequences refer to as well."""
        slots = sum(slot != NO_STATE for held in self.slots for slot in held)
        return sum(self.end) - sum(self.first) + slots
