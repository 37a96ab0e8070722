from __future__ import annotations

from llmd.pager.pool import BlockPool


def test_promised_blocks_are_not_available_to_others() -> None:
    pool = BlockPool(5)
    pool.reserve(3)
    assert (pool.num_free, pool.num_available) == (5, 2)
    pool.take_reserved()
    assert (pool.num_free, pool.num_available) == (4, 2)


def test_blocks_given_back_with_their_promise_can_be_taken_again() -> None:
    pool = BlockPool(2)
    pool.reserve(1)
    block = pool.take_reserved()
    pool.give_back([block], keep_promise=True)
    assert pool.reserved == 1
    pool.take_reserved()


def test_blocks_given_back_for_good_are_available() -> None:
    pool = BlockPool(2)
    pool.reserve(2)
    blocks = [pool.take_reserved(), pool.take_reserved()]
    assert sorted(blocks) == [0, 1]
    pool.give_back(blocks, keep_promise=False)
    assert (pool.num_free, pool.num_available) == (2, 2)
