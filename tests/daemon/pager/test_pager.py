"""Invariants of the pager over generated histories, release of blocks by windows, and shared prefixes."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api import BLOCK_LEN
from llmd.api.reports import GroupBlocks
from llmd.pager.block_counts import blocks_for, most_forked
from llmd.pager.block_keys import BlockKeys
from llmd.pager.pager import Pager
from tests import histories
from tests.daemon.pager.pager_history import CHUNK, FULL, MAX_LEN, STATE, WINDOW, PagerHistory

TestPagerHistory = histories.timeout(PagerHistory.TestCase)
TestPagerHistory.settings = settings(max_examples=histories.EXAMPLES, stateful_step_count=40)


def make_pager(full: int = 40, window: int = 20) -> Pager:
    return Pager((FULL, WINDOW), (full, window), max_sequences=4, max_len=MAX_LEN, chunk_len=CHUNK)


def run(pager: Pager, sequence: int, tokens: list[int]) -> int | None:
    """Open a sequence and compute all its tokens; return how many were cached."""
    cached = pager.open(sequence, tokens, BlockKeys())
    while pager.length(sequence) < len(tokens):
        count = min(CHUNK, len(tokens) - pager.length(sequence))
        assert pager.prepare(sequence, count)
        pager.advance(sequence, count)
    return cached


def test_opening_is_refused_when_one_group_is_short() -> None:
    pager = make_pager(full=10, window=20)
    run(pager, 1, list(range(100)))
    assert pager.open(2, list(range(200, 300)), BlockKeys()) is None
    pager.free(1)
    assert pager.open(2, list(range(200, 300)), BlockKeys()) == 0


def test_opening_leaves_the_blocks_that_it_is_told_to_spare() -> None:
    pager = make_pager(full=10)
    assert pager.open(1, list(range(7 * BLOCK_LEN)), BlockKeys(), spare=4) is None
    assert pager.open(1, list(range(7 * BLOCK_LEN)), BlockKeys(), spare=3) == 0


def test_fits_ever_looks_at_whole_pools() -> None:
    pager = make_pager(full=10, window=20)
    run(pager, 1, list(range(160)))
    assert pager.fits_ever(160)
    assert not pager.fits_ever(161)


def test_a_window_group_gives_blocks_back_while_the_sequence_runs() -> None:
    pager = make_pager(window=5)
    run(pager, 1, list(range(300)))
    assert pager.pools[1].num_free >= 3
    assert pager.pools[0].num_free == 40 - blocks_for(300)


def test_a_freed_sequence_leaves_its_blocks_free_and_known() -> None:
    pager = make_pager()
    tokens = list(range(300))
    run(pager, 1, tokens)
    pager.free(1)
    assert [pool.num_free for pool in pager.pools] == [40, 20]
    assert pager.open(2, tokens, BlockKeys()) == 288


def test_a_prefix_is_shared_with_a_sequence_that_still_runs() -> None:
    pager = make_pager(full=30)
    run(pager, 1, [*range(200), 7])
    free = pager.pools[0].num_free
    assert pager.open(2, [*range(200), 8], BlockKeys()) == 192
    assert pager.pools[0].num_free == free


def test_the_last_token_is_always_computed() -> None:
    pager = make_pager()
    tokens = list(range(2 * BLOCK_LEN))
    run(pager, 1, tokens)
    pager.free(1)
    assert pager.open(2, tokens, BlockKeys()) == BLOCK_LEN


@pytest.mark.parametrize("keys", [None, BlockKeys("another user")])
def test_others_share_nothing(keys: BlockKeys | None) -> None:
    pager = make_pager()
    run(pager, 1, list(range(100)))
    assert pager.open(2, list(range(100)), keys) == 0


@pytest.mark.parametrize(("others", "cached"), [(64, 144), (80, 80), (160, 0)])
def test_a_hit_needs_the_last_window_of_every_group(others: int, cached: int) -> None:
    """Only blocks of the window group are evicted: those of the long prompt, then those of its prefix."""
    pager = make_pager(full=40, window=10)
    tokens = list(range(160))
    for sequence, computed in enumerate((tokens, tokens[:96], list(range(1000, 1000 + others)))):
        run(pager, sequence, computed)
        pager.free(sequence)
    assert pager.open(3, tokens, BlockKeys()) == cached
    pager.check_integrity()


def test_a_fork_copies_the_block_that_both_go_on_in() -> None:
    pager = make_pager()
    run(pager, 1, list(range(40)))
    assert pager.fork(1, 2, [*range(40), 5])
    free = [pool.num_free for pool in pager.pools]
    assert pager.prepare(2, 1)
    copies = pager.copies()
    (full, source, target), (window, _, _) = copies.tolist()
    assert (full, window) == (0, 1)
    assert source != target
    assert [pool.num_free for pool in pager.pools] == [count - 1 for count in free]
    pager.copied(copies)
    assert pager.prepare(1, 1)
    assert pager.copies().size == 0


def test_tables_are_as_wide_as_the_longest_of_their_sequences() -> None:
    pager = make_pager()
    for sequence, tokens in ((1, 20), (2, 50)):
        assert pager.open(sequence, list(range(tokens)), None, spare=0) == 0
        assert pager.prepare(sequence, min(tokens, CHUNK))
    assert [table.shape for table in pager.tables([1])] == [(1, 2), (1, 2)]
    assert [table.shape for table in pager.tables([1, 2])] == [(2, 3), (2, 3)]
    assert all(table.flags.c_contiguous for table in pager.tables([1, 2]))


def test_a_failed_step_is_planned_anew_with_its_copies() -> None:
    pager = make_pager()
    run(pager, 1, list(range(40)))
    assert pager.fork(1, 2, [*range(40), 5])
    assert pager.prepare(2, 1)
    copies = pager.copies()
    assert pager.planned(2) == 41
    pager.rewind()
    assert (pager.planned(2), pager.length(2)) == (40, 40)
    assert pager.prepare(2, 1)
    assert pager.copies().tolist() == copies.tolist()


def test_a_fork_shares_no_block_that_its_parent_is_about_to_begin() -> None:
    pager = make_pager()
    run(pager, 1, [*range(3 * BLOCK_LEN)])
    assert pager.prepare(1, 1)
    assert pager.fork(1, 2, [*range(3 * BLOCK_LEN), 5])
    assert pager.prepare(2, 1)
    parent, child = pager.tables([1, 2])[0].tolist()
    assert parent[:3] == child[:3]
    assert parent[3] != child[3]
    assert pager.copies().size == 0


def test_several_sequences_take_their_blocks_all_or_none() -> None:
    pager = make_pager(full=5, window=5)
    run(pager, 1, list(range(2 * BLOCK_LEN)))
    for child in (2, 3):
        assert pager.fork(1, child, [*range(2 * BLOCK_LEN), child])
    assert not pager.prepare_all({1: 1, 2: 1, 3: BLOCK_LEN + 1})
    assert [pager.planned(sequence) for sequence in (1, 2, 3)] == [2 * BLOCK_LEN] * 3
    assert pager.prepare_all({1: 1, 2: 1, 3: 1})
    assert [pool.num_free for pool in pager.pools] == [0, 0]
    pager.check_integrity()


def test_no_more_is_taken_from_the_cache_than_asked_for() -> None:
    pager = make_pager()
    tokens = list(range(60))
    run(pager, 1, tokens)
    pager.free(1)
    assert pager.open(2, tokens, BlockKeys(), most_cached=2 * BLOCK_LEN) == 2 * BLOCK_LEN
    pager.free(2)
    assert pager.open(3, tokens, BlockKeys(), most_cached=2 * BLOCK_LEN - 1) == BLOCK_LEN


@given(
    prompt_len=st.integers(1, 40),
    width=st.integers(1, 4),
    steps=st.integers(1, 40),
    seed=st.integers(0, 999),
)
def test_forks_never_hold_more_blocks_than_was_said(
    prompt_len: int, width: int, steps: int, seed: int
) -> None:
    """All grow by one token per step, then fork and leave at random, as the beams of a search do."""
    total_len = prompt_len + steps
    most = [most_forked(group, total_len, CHUNK, width, prompt_len) for group in (FULL, WINDOW)]
    pager, chance = make_pager(*most), random.Random(seed)
    assert pager.shortage(total_len, width, prompt_len) is None
    run(pager, 0, list(range(prompt_len)))
    sequences, ids = [0], itertools.count(1)
    for length in range(prompt_len, total_len):
        parents = chance.choices(sequences, k=width)
        for gone in set(sequences) - set(parents):
            pager.free(gone)
        sequences = sorted(set(parents))
        for parent in parents:
            if len(sequences) < width:
                sequences.append(next(ids))
                assert pager.fork(parent, sequences[-1], list(range(total_len)))
        assert pager.prepare_all(dict.fromkeys(sequences, 1))
        pager.copied(pager.copies())
        for sequence in sequences:
            pager.advance(sequence, 1)
            assert pager.length(sequence) == length + 1


def test_a_shortage_is_told_with_the_blocks() -> None:
    pager = make_pager(full=10, window=20)
    assert pager.shortage(40, 3, 32) is None
    assert pager.shortage(80, 3, 32) == (2 + 3 * 3 + 1, 10)
    assert pager.shortage(80) is None


def test_retracted_positions_give_back_their_blocks() -> None:
    pager = make_pager(8, 8)
    assert pager.open(1, [5] * 20, None) == 0
    assert pager.prepare(1, 20)
    pager.advance(1, 20)
    free = [pool.num_free for pool in pager.pools]
    assert pager.prepare(1, 15)
    assert [pool.num_free for pool in pager.pools] == [count - 1 for count in free]
    pager.advance(1, 3)
    pager.retract(1)
    assert pager.planned(1) == pager.length(1) == 23
    assert [pool.num_free for pool in pager.pools] == free
    pager.check_integrity()
    assert pager.prepare(1, 15)
    assert [pool.num_free for pool in pager.pools] == [count - 1 for count in free]


def test_blocks_are_listed_in_the_order_of_the_pool() -> None:
    pager = Pager((FULL, STATE), (8, 6), max_sequences=4, max_len=MAX_LEN, chunk_len=CHUNK)
    run(pager, 1, [1] * (2 * BLOCK_LEN + 1))
    pager.fork(1, 2, [1] * (2 * BLOCK_LEN + 2))
    run(pager, 3, [3] * BLOCK_LEN + [4])
    pager.free(3)
    blocks, slots = pager.blocks()
    assert blocks == GroupBlocks(0, BLOCK_LEN, (("shared", 3), ("cached", 1), ("free", 4)))
    assert (slots.block_len, slots.map) == (None, (("shared", 1), ("free", 5)))
