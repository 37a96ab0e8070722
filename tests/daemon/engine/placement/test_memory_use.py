from __future__ import annotations

import pytest

from llmd.api import MemoryBudgetError
from llmd.api.device import HOST_MEMORY
from llmd.engine.placement.memory_use import MemoryUse, by_memory, in_memory, least_by_memory, pool_bytes

USE = MemoryUse("host", weight_bytes=50, step_bytes=10, block_bytes=(3, 4))


def test_uses_of_one_memory_add_up() -> None:
    card = MemoryUse("card", 7, 8, (0, 9))
    both = by_memory([USE, card, MemoryUse("host", 1, 2, (5, 0))])
    assert both == {"host": MemoryUse("host", 51, 12, (8, 4)), "card": card}


def test_main_memory_has_streamed_weights_and_experts_that_a_card_reads() -> None:
    card = MemoryUse("card", 7, 8, (0, 9), streamed_bytes=100, main_memory_expert_bytes=20)
    assert by_memory([card])[HOST_MEMORY] == MemoryUse(HOST_MEMORY, 120, 0, (0, 0))
    host = MemoryUse(HOST_MEMORY, 1, 2, (3, 4))
    assert by_memory([host, card])[HOST_MEMORY] == MemoryUse(HOST_MEMORY, 121, 2, (3, 4))


def test_weights_are_taken_from_a_limit_but_not_from_what_is_free_with_them() -> None:
    assert USE.left_for_kv(100, None) == 90
    assert USE.left_for_kv(100, 120) == 60
    assert USE.left_for_kv(30, 120) == 20


def test_what_does_not_fit_is_an_error_with_the_figures() -> None:
    with pytest.raises(MemoryBudgetError, match=r"buffers of 10 B do not fit the 9 B that are free \("):
        USE.left_for_kv(9, None)
    card = MemoryUse("card", 50, 10, ())
    with pytest.raises(MemoryBudgetError, match=r"buffers of 10 B do not .* free in memory card \("):
        card.left_for_kv(9, None)
    with pytest.raises(
        MemoryBudgetError, match=r"50 B of weights and 10 B of step buffers exceed the limit of 59 B \("
    ):
        USE.left_for_kv(100, 59)


def test_the_least_of_devices_that_share_a_memory_counts() -> None:
    assert least_by_memory([("a", 3), ("b", 9), ("a", 2), ("b", 10)]) == {"a": 2, "b": 9}


def test_pools_take_their_blocks() -> None:
    assert pool_bytes((2, 10), (3, 4)) == 46


def test_only_memories_of_devices_are_named() -> None:
    assert (in_memory("host"), in_memory("card")) == ("", " in memory card")
