from __future__ import annotations

import pytest

from llmd.api import KVGroup, MemoryBudgetError
from llmd.engine.kv_budget import KVBudget, plan_kv
from llmd.pager.block_counts import most_blocks
from llmd.pager.states import pool_slots

FULL, WINDOW = KVGroup(0, None, 1, 8, (0,)), KVGroup(1, 64, 1, 8, (1,))


def plan(budget_bytes: int, slots: int = 4, context_len: int = 1024) -> KVBudget:
    return plan_kv(
        (FULL, WINDOW),
        (100, 10),
        slots=slots,
        context_len=context_len,
        chunk_len=256,
        budget_bytes=budget_bytes,
    )


def test_pools_hold_every_slot_at_full_context_where_memory_allows() -> None:
    budget = plan(1 << 30)
    window_blocks = 4 * most_blocks(WINDOW, 1024, 256)
    assert budget == KVBudget((256, window_blocks), 25600 + 10 * window_blocks, 1024)


def test_the_budget_is_never_exceeded_and_used_to_the_last_block() -> None:
    for budget_bytes in range(110, 30_000, 777):
        budget = plan(budget_bytes)
        assert budget.total_bytes <= budget_bytes
        assert budget.total_bytes > budget_bytes - 110 or budget.num_blocks[0] == 256


def test_a_small_pool_says_how_long_a_sequence_it_holds() -> None:
    assert plan(110 * 10).max_tokens == 160


def test_no_room_for_a_block_is_an_error_with_both_figures() -> None:
    with pytest.raises(MemoryBudgetError, match=r"110 B \(16 tokens\), the budget is 50 B"):
        plan(50)


@pytest.mark.parametrize("budget_bytes", [100_000, 20_000])
def test_states_of_all_slots_come_before_blocks(budget_bytes: int) -> None:
    state = KVGroup(1, None, 0, 0, (1,), kind="state", state_bytes=500)
    slots, depth = 3, 4
    budget = plan_kv(
        (FULL, state),
        (100, 500),
        slots=slots,
        context_len=1024,
        chunk_len=256,
        budget_bytes=budget_bytes,
        depth=depth,
    )
    left = budget_bytes - pool_slots(slots, depth) * 500
    assert budget.num_blocks == (min(left // 100, slots * 64), pool_slots(slots, depth))
    assert budget.total_bytes <= budget_bytes
