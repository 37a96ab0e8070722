"""The longest cached prefix that all groups can continue from."""

from __future__ import annotations

import pytest

from llmd.api import KVGroup
from llmd.pager.pool import BlockPool
from llmd.pager.prefix import first_needed, key_index, longest_hit, num_full

FULL = KVGroup(0, None, 1, 8, (0,))
WINDOW = KVGroup(1, 20, 1, 8, (1,))
STATE = KVGroup(2, None, 0, 0, (2,), kind="state", state_bytes=4)
SELDOM = KVGroup(3, None, 1, 8, (3,), kind="latent", stride=48)
KEYS = [bytes([number]) for number in range(8)]


def pool_with(known: set[int]) -> BlockPool:
    """Return a pool with some blocks of the prefix."""
    pool = BlockPool(8)
    for number in sorted(known):
        pool.remember(pool.take(), KEYS[number])
    return pool


@pytest.mark.parametrize(("length", "block"), [(0, 0), (19, 0), (34, 0), (35, 1), (51, 2)])
def test_a_window_of_twenty_reads_nineteen_tokens_back(length: int, block: int) -> None:
    assert first_needed(WINDOW, length) == block
    assert first_needed(FULL, length) == 0


@pytest.mark.parametrize(
    ("full", "window", "blocks"),
    [
        ({0, 1, 2, 3}, {0, 1, 2, 3}, 4),
        ({0, 1, 3}, {0, 1, 2, 3}, 2),
        ({0, 1, 2, 3}, {2, 3}, 4),
        ({0, 1, 2, 3}, {1, 2}, 3),
        ({0, 1, 2, 3}, {3}, 0),
        ({0, 1, 2, 3}, set(), 0),
        (set(), {0, 1, 2, 3}, 0),
    ],
)
def test_a_hit_has_what_every_group_reads_next(full: set[int], window: set[int], blocks: int) -> None:
    assert longest_hit((FULL, WINDOW), (pool_with(full), pool_with(window)), KEYS) == blocks


@pytest.mark.parametrize(
    ("full", "seldom", "blocks"),
    [
        ({0, 1, 2, 3}, {2}, 4),
        ({0, 1, 2, 3, 4, 5, 6}, {2, 5}, 7),
        ({0, 1, 2, 3, 4, 5, 6}, {2}, 5),
        ({0, 1, 2, 3, 4, 5, 6}, {5}, 2),
        ({0, 1, 2, 3}, set(), 2),
    ],
)
def test_a_vector_for_three_blocks_is_needed_once_they_are_full(
    full: set[int], seldom: set[int], blocks: int
) -> None:
    assert longest_hit((FULL, SELDOM), (pool_with(full), pool_with(seldom)), KEYS) == blocks
    assert [key_index(SELDOM, block) for block in range(2)] == [2, 5]
    assert [num_full(SELDOM, length) for length in (0, 47, 48, 95, 96)] == [0, 0, 1, 1, 2]


def test_without_full_groups_a_gap_does_not_end_the_search() -> None:
    assert longest_hit((WINDOW,), (pool_with({0, 3, 4}),), KEYS) == 5


@pytest.mark.parametrize(
    ("full", "states", "blocks"),
    [
        ({0, 1, 2, 3}, {1, 3}, 4),
        ({0, 1, 2, 3}, {0, 2}, 3),
        ({0, 1, 2}, {1, 3}, 2),
        ({0, 1, 2, 3}, set(), 0),
        ({1, 2, 3}, {1, 3}, 0),
    ],
)
def test_a_hit_ends_where_there_is_a_snapshot(full: set[int], states: set[int], blocks: int) -> None:
    assert longest_hit((FULL, STATE), (pool_with(full), pool_with(states)), KEYS) == blocks


def test_all_state_groups_need_a_snapshot_of_the_same_length() -> None:
    assert longest_hit((STATE, STATE), (pool_with({1, 3}), pool_with({1, 2})), KEYS) == 2
