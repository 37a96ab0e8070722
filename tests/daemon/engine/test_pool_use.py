"""What is in use of KV pools."""

from __future__ import annotations

from collections.abc import Callable

from llmd.api import KVGroup
from llmd.engine.core import EngineCore
from llmd.engine.pool_use import PoolUse, pool_use
from llmd.pager.pool import BlockPool
from tests.serving.cores import HYBRID_MIXTURE, submit

FULL = KVGroup(0, None, 1, 8, (0,))
STATE = KVGroup(1, None, 0, 0, (1,), kind="state", state_bytes=8)


def test_blocks_are_counted_and_slots_measured() -> None:
    blocks, slots = BlockPool(10), BlockPool(4)
    blocks.take()
    for _ in range(3):
        slots.take()
    sizes = {0: 5, 1: 70}
    assert pool_use((FULL, STATE), (blocks, slots), sizes.__getitem__) == PoolUse(1, 10, 3 * 70, 4 * 70)
    assert pool_use((FULL,), (blocks,), sizes.__getitem__) == PoolUse(1, 10, 0, 0)


def test_a_hybrid_reports_the_states_of_its_sequences(make_core: Callable[..., EngineCore]) -> None:
    core = make_core(model=HYBRID_MIXTURE)
    assert (core.report().state_bytes_used, core.report().kv_blocks_used) == (0, 0)
    core.submit(submit(1, 20, max_tokens=3))
    core.step()
    report = core.report()
    assert 0 < report.state_bytes_used < report.state_bytes_total
    assert 0 < report.kv_blocks_used < report.kv_blocks_total
