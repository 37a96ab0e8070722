from __future__ import annotations

from llmd.pager.owned_blocks import OwnedBlocks
from llmd.pager.states import NO_STATE


def test_blocks_and_slots_are_counted_but_not_the_state_before_the_first_token() -> None:
    owned = OwnedBlocks(0, 0, [], None, 0, 0, first=[0, 2], end=[5, 4], slots=[[NO_STATE, 3], [1]])
    assert owned.num_blocks == 5 + 2 + 2
