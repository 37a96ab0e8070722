"""Blocks of a KV group are copied in order, and read and overwritten by number."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KVGroup
from llmd_backend_cuda.block_pool import BlockPool
from llmd_backend_cuda.runtime import KernelSpec
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard

pytestmark = NEEDS_COMPILER

COPYING = KernelSpec.of("store_kv", "copy_blocks", {"HEAD_DIM": 32, "KV_DTYPE": 0})
GROUP = KVGroup(1, None, 1, 32, (0,))


@pytest.fixture
def pool() -> BlockPool:
    pool = BlockPool(SimulatedCard(), GROUP, 4, 48, COPYING)
    pool.write_blocks(
        np.arange(4, dtype=np.int32), np.repeat(np.arange(4, dtype=np.uint8), 48).reshape(4, 48)
    )
    return pool


def test_blocks_are_copied_in_order_and_those_of_other_groups_are_not(pool: BlockPool) -> None:
    card = SimulatedCard()
    copies = np.array([3, 1, 0, 1, 2, 0, 2, 1, 1, 2], np.int32)  # the number, then (group, source, target)
    memory = card.allocate(copies.nbytes)
    card.upload(memory, 0, copies)
    card.launch(pool.copy_launch(memory.pointer, memory.pointer + 4))
    card.synchronize()
    assert pool.read_blocks(np.arange(4, dtype=np.int32))[:, 0].tolist() == [0, 0, 0, 3]


def test_blocks_that_are_not_there_are_named_as_the_group_calls_them() -> None:
    slots = BlockPool(SimulatedCard(), KVGroup(0, None, 0, 0, (0,), "state", 0, 16), 2, 64, COPYING)
    with pytest.raises(ValueError, match=r"slots \[2\] are outside 0..1"):
        slots.read_blocks(np.array([2], np.int32))
    with pytest.raises(ValueError, match=r"contents are uint8 \(1, 63\), expected uint8 \(1, 64\)"):
        slots.write_blocks(np.array([1], np.int32), np.zeros((1, 63), np.uint8))
