"""Invariants of the pager over generated histories, and what windows give back."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmd.api import BLOCK_LEN, KVGroup
from llmd.pager.pager import Pager, blocks_for, most_blocks

FULL = KVGroup(0, None, 2, 8, (0, 2))
WINDOW = KVGroup(1, 24, 2, 8, (1, 3))
MAX_LEN, CHUNK = 320, 40


class PagerHistory(RuleBasedStateMachine):
    """Admit, grow and free in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.pager = Pager((FULL, WINDOW), (40, 20), max_sequences=4, max_len=MAX_LEN, chunk_len=CHUNK)
        self.totals: dict[int, int] = {}
        self.next_id = 0

    @rule(total_len=st.integers(1, MAX_LEN))
    def admit(self, total_len: int) -> None:
        if self.pager.admit(self.next_id, total_len):
            self.totals[self.next_id] = total_len
        self.next_id += 1

    @precondition(lambda self: self.totals)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.totals)))
        room = self.totals[sequence] - self.pager.length(sequence)
        count = data.draw(st.integers(0, min(room, CHUNK)))
        before = self.pager.length(sequence)
        self.pager.prepare(sequence, count)
        assert self.pager.length(sequence) == before
        self.check_table(sequence, before, count)
        if data.draw(st.booleans()):  # the step may fail, and be tried again
            self.pager.advance(sequence, count)

    @precondition(lambda self: self.totals)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.totals)))
        self.pager.free(sequence)
        del self.totals[sequence]

    def check_table(self, sequence: int, length: int, count: int) -> None:
        """Every position that the step reads or writes has a block."""
        for group, table in zip((FULL, WINDOW), self.pager.tables([sequence]), strict=True):
            first = 0 if group.window is None else max(0, length - group.window + 1)
            used = table[0, first // BLOCK_LEN : blocks_for(length + count)]
            assert (used >= 0).all()

    @invariant()
    def adds_up(self) -> None:
        self.pager.check_integrity()


TestPagerHistory = PagerHistory.TestCase
TestPagerHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def make_pager(full: int = 40, window: int = 20) -> Pager:
    return Pager((FULL, WINDOW), (full, window), max_sequences=4, max_len=MAX_LEN, chunk_len=CHUNK)


def test_admission_is_refused_when_one_group_is_short() -> None:
    pager = make_pager(full=10, window=20)
    assert pager.admit(1, 100)
    assert not pager.admit(2, 100)
    pager.free(1)
    assert pager.admit(2, 100)


def test_a_refused_admission_changes_nothing() -> None:
    pager = make_pager(full=10, window=3)
    assert not pager.admit(1, 160)
    assert [pool.reserved for pool in pager.pools] == [0, 0]


def test_fits_ever_looks_at_whole_pools() -> None:
    pager = make_pager(full=10, window=20)
    pager.admit(1, 160)
    assert pager.fits_ever(160)
    assert not pager.fits_ever(161)


def test_a_window_group_never_needs_more_than_window_and_chunk() -> None:
    assert most_blocks(WINDOW, 10_000, CHUNK) == blocks_for(24 - 1 + CHUNK) + 1
    assert most_blocks(WINDOW, 16, CHUNK) == 1
    assert most_blocks(FULL, 10_000, CHUNK) == 625


def test_a_freed_sequence_leaves_an_empty_pool() -> None:
    pager = make_pager()
    pager.admit(1, 300)
    for _ in range(7):
        pager.prepare(1, CHUNK)
        pager.advance(1, CHUNK)
    pager.free(1)
    assert [(pool.num_free, pool.reserved) for pool in pager.pools] == [(40, 0), (20, 0)]
