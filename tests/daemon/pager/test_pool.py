"""Blocks are used, cached or empty, and cached contents are kept until their block is needed."""

from __future__ import annotations

from llmd.pager.pool import BlockPool


def test_a_block_is_free_when_its_last_reference_is_given_back() -> None:
    pool = BlockPool(2)
    block = pool.share(pool.take())
    pool.give_back([block])
    assert (pool.references(block), pool.num_free) == (1, 1)
    pool.give_back([block])
    assert (pool.references(block), pool.num_free) == (0, 2)


def test_known_contents_are_found_after_the_block_is_free() -> None:
    pool = BlockPool(2)
    block = pool.take()
    pool.remember(block, b"key")
    pool.give_back([block])
    assert pool.find(b"key") == block
    assert (pool.num_free, len(pool._cached)) == (2, 1)
    assert pool.share(block) == block
    assert (pool.num_free, len(pool._cached)) == (1, 0)
    pool.check_integrity()


def test_empty_blocks_are_taken_before_known_ones() -> None:
    pool = BlockPool(3)
    known = pool.take()
    pool.remember(known, b"key")
    pool.give_back([known])
    assert known not in {pool.take(), pool.take()}
    assert pool.find(b"key") == known
    assert pool.take() == known
    assert pool.find(b"key") is None
    pool.check_integrity()


def test_the_contents_that_were_not_used_for_longest_go_first() -> None:
    pool = BlockPool(3)
    blocks = [pool.take() for _ in range(3)]
    for block in blocks:
        pool.remember(block, bytes([block]))
    pool.give_back(blocks)
    pool.give_back([pool.share(blocks[0])])
    assert [pool.take() for _ in range(3)] == [blocks[1], blocks[2], blocks[0]]


def test_of_two_blocks_with_the_same_contents_one_is_known() -> None:
    pool = BlockPool(2)
    first, second = pool.take(), pool.take()
    pool.remember(first, b"key")
    pool.remember(second, b"key")
    pool.give_back([first, second])
    assert (pool.find(b"key"), len(pool._cached)) == (first, 1)
    pool.check_integrity()


def test_cached_blocks_are_listed_by_their_last_use() -> None:
    pool = BlockPool(4)
    blocks = [pool.take() for _ in range(3)]
    for block, key in zip(blocks, (b"a", b"b", b"c"), strict=True):
        pool.remember(block, key)
    pool.give_back([blocks[1], blocks[0]])
    assert pool.cached() == [(b"a", blocks[0]), (b"b", blocks[1])]


def test_adopted_blocks_are_evicted_before_all_others_the_last_adopted_first() -> None:
    pool = BlockPool(3)
    used = pool.take()
    pool.remember(used, b"used")
    pool.give_back([used])
    first, second = pool.adopt(b"first"), pool.adopt(b"second")
    assert pool.adopt(b"first") is None, "the key is already cached"
    assert pool.adopt(b"third") is None, "no block is empty"
    pool.check_integrity()
    assert [pool.take() for _ in range(3)] == [second, first, used]


def test_a_block_is_free_cached_used_or_shared() -> None:
    pool = BlockPool(4)
    shared, cached, _ = pool.share(pool.take()), pool.take(), pool.take()
    pool.remember(shared, b"shared")
    pool.remember(cached, b"cached")
    pool.give_back([cached])
    assert pool.states() == ["shared", "cached", "used", "free"]
