from __future__ import annotations

from llmd.api import KVGroup
from llmd.pager.block_counts import blocks_for, ends_within, most_blocks, most_forked

FULL, WINDOW = KVGroup(0, None, 2, 8, (0, 2)), KVGroup(1, 24, 2, 8, (1, 3))
SELDOM = KVGroup(2, None, 1, 8, (4,), kind="latent", stride=48)
CHUNK = 40


def test_a_block_is_begun_by_its_first_position() -> None:
    assert [blocks_for(count) for count in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_a_window_group_never_needs_more_than_window_and_chunk() -> None:
    assert most_blocks(WINDOW, 10_000, CHUNK) == blocks_for(24 - 1 + CHUNK) + 1
    assert most_blocks(WINDOW, 16, CHUNK) == 1
    assert most_blocks(FULL, 10_000, CHUNK) == 625


def test_a_vector_for_many_tokens_has_a_block_of_its_own() -> None:
    assert (SELDOM.block_tokens, SELDOM.block_vectors) == (48, 1)
    assert [most_blocks(SELDOM, length, CHUNK) for length in (48, 49, 10_000)] == [1, 2, 209]
    assert most_forked(SELDOM, 96, CHUNK, 3, 50) == 1 + 3 * 1 + 1


def test_blocks_end_with_the_tokens_that_are_valid() -> None:
    assert ends_within((FULL, SELDOM), (5, 3), 50) == [4, 2]
    assert ends_within((FULL, SELDOM), (2, 1), 50) == [2, 1]


def test_forks_share_whole_blocks_and_two_of_them_copy_one() -> None:
    assert most_forked(FULL, 80, CHUNK, 3, 32) == 2 + 3 * 3 + 1
    assert most_forked(WINDOW, 10_000, CHUNK, 2, 32) == 2 * (blocks_for(24 - 1) + 2) + blocks_for(CHUNK) + 1
