from __future__ import annotations

from llmd.server.models.memory_budget import MemoryBudget


def test_a_limit_is_what_may_be_taken_whatever_else_is_free() -> None:
    assert MemoryBudget(100, lambda: 7).free_bytes(held=30, promised=10) == 70


def test_without_one_it_is_what_was_available_at_first() -> None:
    available = iter([100, 1000])
    memory = MemoryBudget(None, lambda: next(available))
    assert memory.free_bytes(held=30, promised=0) == 70


def test_other_programs_need_memory_too() -> None:
    available = iter([100, 50])
    memory = MemoryBudget(None, lambda: next(available))
    assert memory.free_bytes(held=30, promised=10) == 40
