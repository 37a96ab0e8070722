"""Invariants of the pager over generated histories, release of blocks by windows, and shared prefixes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmd.api import BLOCK_LEN, KVGroup
from llmd.pager.block_counts import blocks_for, most_forked
from llmd.pager.block_keys import BlockKeys
from llmd.pager.pager import NO_BLOCK, Copies, Pager
from llmd.pager.states import NO_STATE
from tests import histories

FULL = KVGroup(0, None, 2, 8, (0, 2))
WINDOW = KVGroup(1, 24, 2, 8, (1, 3))
STATE = KVGroup(2, None, 0, 0, (4, 5), kind="state", state_bytes=8)
MAX_LEN, CHUNK, DEPTH = 320, 40, 2


class Flight(NamedTuple):
    """A step in flight: the copies that it does first, and what it writes.

    A write is (sequence, its row of each table, its tokens, first position, count).
    """

    copies: Copies
    writes: list[tuple[int, tuple[Copies, ...], tuple[int, ...], int, int]]


class Contents:
    """Contents of a simulated device: for each place of a block, the tokens up to the one of its key and
    value; for each slot, the tokens of its state.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self.states: dict[int, tuple[int, ...]] = {NO_STATE: ()}

    def run(self, flight: Flight) -> None:
        for group, source, target in flight.copies.tolist():
            for offset in range(BLOCK_LEN):
                self.places[group, target, offset] = self.places.get((group, source, offset), ())
        for _, (*tables, slots), tokens, start, count in flight.writes:
            read, written = slots[0].tolist()
            assert self.states[read] == tokens[:start]
            self.states[written] = tokens[: start + count]
            for group, table in enumerate(tables):
                for position in range(start, start + count):
                    block = int(table[0, position // BLOCK_LEN])
                    assert block != NO_BLOCK
                    self.places[group, block, position % BLOCK_LEN] = tokens[: position + 1]

    def check(self, pager: Pager, sequence: int, tokens: Sequence[int]) -> None:
        """Check that all that the next token reads is present and was written for exactly these tokens."""
        length = pager.length(sequence)
        *tables, slots = pager.tables([sequence])
        assert self.states[int(slots[0, 1])] == tuple(tokens[:length])
        for kv_group, table in zip((FULL, WINDOW), tables, strict=True):
            first = 0 if kv_group.window is None else max(0, length - kv_group.window + 1)
            for position in range(first, length):
                block = int(table[0, position // BLOCK_LEN])
                assert block != NO_BLOCK
                held = self.places[kv_group.id, block, position % BLOCK_LEN]
                assert held == tuple(tokens[: position + 1])


class PagerHistory(RuleBasedStateMachine):
    """Open, fork, grow and free in any order, with up to two steps in flight on a simulated device."""

    def __init__(self) -> None:
        super().__init__()
        self.pager = Pager(
            (FULL, WINDOW, STATE),
            (30, 20, 12),
            max_sequences=5,
            max_len=MAX_LEN,
            chunk_len=CHUNK,
            depth=DEPTH,
            snapshot_len=2 * BLOCK_LEN,
        )
        self.contents = Contents()
        self.tokens: dict[int, list[int]] = {}
        self.flights: list[Flight] = []
        self.next_id = 0

    def begun(self) -> list[int]:
        """Return the sequences with valid tokens."""
        return [sequence for sequence in sorted(self.tokens) if self.pager.length(sequence)]

    # Few different prefixes, so that sequences share them.
    @rule(
        beginning=st.integers(0, 2), count=st.integers(1, 120), tail=st.integers(0, 3), cached=st.booleans()
    )
    def open(self, beginning: int, count: int, tail: int, cached: bool) -> None:  # noqa: FBT001 - hypothesis'
        tokens = [beginning] * count + [tail]
        if self.pager.open(self.next_id, tokens, BlockKeys() if cached else None) is not None:
            self.tokens[self.next_id] = tokens
            assert self.pager.length(self.next_id) < len(tokens)
        self.next_id += 1

    @precondition(lambda self: self.begun())
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        parent = data.draw(st.sampled_from(self.begun()))
        tail = data.draw(st.lists(st.integers(4, 5), min_size=1, max_size=20))
        tokens = [*self.tokens[parent][: self.pager.length(parent)], *tail][:MAX_LEN]
        if self.pager.fork(parent, self.next_id, tokens):
            self.tokens[self.next_id] = tokens
        self.next_id += 1

    @precondition(lambda self: self.tokens and len(self.flights) < 2)
    @rule(data=st.data())
    def launch(self, data: st.DataObject) -> None:
        writes = []
        paused = data.draw(st.sets(st.sampled_from(sorted(self.tokens)), max_size=2))
        for sequence in sorted(self.tokens.keys() - paused):
            tokens, planned = self.tokens[sequence], self.pager.planned(sequence)
            most = min(len(tokens) - planned, CHUNK - (planned - self.pager.length(sequence)))
            count = self.pager.fitting(planned, min(most, data.draw(st.integers(1, CHUNK))))
            if not self.pager.prepare(sequence, count):
                assert self.pager.planned(sequence) == planned
                continue
            tables = tuple(table.copy() for table in self.pager.tables([sequence]))
            writes.append((sequence, tables, tuple(tokens[: planned + count]), planned, count))
            if len(tokens) == planned + count and len(tokens) < MAX_LEN:
                tokens.append(data.draw(st.integers(0, 2)))
        self.flights.append(Flight(self.pager.copies(), writes))

    @precondition(lambda self: self.flights)
    @rule()
    def arrive(self) -> None:
        flight = self.flights.pop(0)
        self.contents.run(flight)
        self.pager.copied(flight.copies)
        for sequence, _, _, _, count in flight.writes:
            if self.pager.owns(sequence):
                self.pager.advance(sequence, count)

    @precondition(lambda self: self.flights)
    @rule(written=st.booleans())
    def fail(self, written: bool) -> None:  # noqa: FBT001 - hypothesis'
        for flight in self.flights if written else ():
            self.contents.run(flight)
        self.flights.clear()
        self.pager.rewind()

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.tokens)))
        self.pager.free(sequence)
        del self.tokens[sequence]

    @invariant()
    def adds_up(self) -> None:
        self.pager.check_integrity()

    @invariant()
    def blocks_are_counted(self) -> None:
        for sequence in self.tokens:
            *tables, slots = self.pager.tables([sequence])
            in_tables = sum(int((table != NO_BLOCK).sum()) for table in tables)
            held = {slot for slot in slots[0].tolist() if slot != NO_STATE}
            assert in_tables + len(held) <= self.pager.num_blocks(sequence) <= in_tables + DEPTH + 1

    @precondition(lambda self: not self.flights)
    @invariant()
    def holds_what_was_written(self) -> None:
        self.contents.run(copies := Flight(self.pager.copies(), []))
        self.pager.copied(copies.copies)
        for sequence, tokens in self.tokens.items():
            self.contents.check(self.pager, sequence, tokens)

    def teardown(self) -> None:
        while self.flights:
            self.arrive()
        self.holds_what_was_written()
        for sequence in self.tokens:
            self.pager.free(sequence)
        assert [pool.num_free for pool in self.pager.pools] == [30, 20, 12]


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
