from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KVGroup, kv_block_bytes
from llmd.builtin.reference.states import StatePool

GROUP = KVGroup(0, None, 0, 0, (2, 5), kind="state", state_bytes=12)
FIRST, SECOND = np.array([1, 2, 3], np.float32), np.array([-4, 5, 6], np.float32)


def test_a_slot_has_a_state_for_each_layer() -> None:
    pool = StatePool(GROUP, 3)
    pool.write(0, 2, FIRST)
    pool.write(1, 2, SECOND)
    assert pool.read(0, 2).tolist() == FIRST.tolist()
    assert pool.read(1, 2).tolist() == SECOND.tolist()
    assert not pool.read(0, 1).any()


def test_a_part_of_a_state_is_written_alone() -> None:
    pool = StatePool(GROUP, 1)
    pool.write(1, 0, FIRST)
    pool.write(1, 0, SECOND[:1], offset=1)
    assert pool.read(1, 0).tolist() == [1, -4, 3]


def test_before_the_first_token_the_state_is_zero() -> None:
    pool = StatePool(GROUP, 1)
    pool.write(0, 0, FIRST)
    assert pool.read(0, -1).tolist() == [0, 0, 0]


def test_a_state_that_was_read_stays_when_its_slot_is_written() -> None:
    pool = StatePool(GROUP, 1)
    pool.write(0, 0, FIRST)
    state = pool.read(0, 0)
    pool.write(0, 0, SECOND)
    assert state.tolist() == FIRST.tolist()


def test_copying_a_slot_takes_all_layers() -> None:
    pool = StatePool(GROUP, 3)
    pool.write(0, 0, FIRST)
    pool.write(1, 0, SECOND)
    pool.copy(0, 2)
    pool.write(0, 0, SECOND)
    assert pool.read(0, 2).tolist() == FIRST.tolist()
    assert pool.read(1, 2).tolist() == SECOND.tolist()


def test_slots_are_read_and_written_as_bytes() -> None:
    first, second = StatePool(GROUP, 3), StatePool(GROUP, 3)
    first.write(0, 1, FIRST)
    first.write(1, 1, SECOND)
    contents = first.read_blocks(np.array([1, 0], np.int32))
    assert contents.shape == (2, kv_block_bytes(GROUP, "f16"))
    second.write_blocks(np.array([2, 1], np.int32), contents)
    assert second.read(0, 2).tolist() == FIRST.tolist()
    assert second.read(1, 2).tolist() == SECOND.tolist()
    assert not second.read(0, 1).any()


def test_slots_that_are_not_there_are_refused() -> None:
    pool = StatePool(GROUP, 3)
    for slots in ([3], [-1]):
        with pytest.raises(ValueError, match=r"outside 0\.\.2"):
            pool.read_blocks(np.array(slots, np.int32))
