"""Slots of states: what a step reads and writes, snapshots, forks and rewinds."""

from __future__ import annotations

import pytest

from llmd.api import BLOCK_LEN, KVGroup
from llmd.pager.block_keys import BlockKeys
from llmd.pager.pager import Pager
from llmd.pager.states import NO_STATE, SNAPSHOT_LEN, SNAPSHOTS, pool_slots

FULL = KVGroup(0, None, 2, 8, (0, 2))
STATE = KVGroup(1, None, 0, 0, (1,), kind="state", state_bytes=8)
SNAPSHOT = 2 * BLOCK_LEN
DEPTH = 2
MOST = DEPTH + 1


def make_pager(slots: int = 12, blocks: int = 40) -> Pager:
    return Pager(
        (FULL, STATE),
        (blocks, slots),
        max_sequences=4,
        max_len=320,
        chunk_len=80,
        depth=DEPTH,
        snapshot_len=SNAPSHOT,
    )


def run(pager: Pager, sequence: int, tokens: list[int], chunk: int = 40) -> int | None:
    """Open a sequence and compute all its tokens; return how many were cached."""
    cached = pager.open(sequence, tokens, BlockKeys())
    while (start := pager.length(sequence)) < len(tokens):
        count = pager.fitting(start, min(chunk, len(tokens) - start))
        assert pager.prepare(sequence, count)
        pager.advance(sequence, count)
    return cached


def slots(pager: Pager, sequence: int) -> list[int]:
    """Return the slots that the last planned step reads and writes."""
    pair: list[int] = pager.tables([sequence])[1][0].tolist()
    return pair


def test_a_step_reads_the_slot_that_the_step_before_it_writes() -> None:
    pager = make_pager()
    assert pager.open(1, list(range(100)), None) == 0
    assert pager.prepare(1, 10)
    none, first = slots(pager, 1)
    assert none == NO_STATE
    assert pager.prepare(1, 10)
    second = slots(pager, 1)
    assert second[0] == first != second[1]
    pager.advance(1, 10)
    assert pager.prepare(1, 10)
    assert slots(pager, 1)[0] == second[1]
    assert slots(pager, 1)[1] not in second
    pager.check_integrity()


def test_a_failed_step_is_repeated_from_the_same_state() -> None:
    pager = make_pager()
    run(pager, 1, list(range(30)))
    valid = slots(pager, 1)[1]
    for _ in range(2):
        for _ in range(DEPTH):
            assert pager.prepare(1, 1)
        pager.rewind()
        assert pager.prepare(1, 1)
        read, written = slots(pager, 1)
        assert read == valid != written
        pager.rewind()
    pager.check_integrity()


def test_a_sequence_holds_one_slot_for_its_length_and_one_for_each_step_in_flight() -> None:
    pager = make_pager()
    run(pager, 1, list(range(100)))
    assert pager.pools[1].num_free == 12 - 1
    for step in range(DEPTH):
        assert pager.prepare(1, 1)
        assert pager.pools[1].num_free == 12 - 2 - step
    pager.free(1)
    assert pager.pools[1].num_free == 12


def test_a_prefix_is_found_where_a_step_left_a_snapshot() -> None:
    pager = make_pager()
    tokens = list(range(100))
    run(pager, 1, tokens)
    pager.free(1)
    assert pager.open(2, [*tokens[:90], 500], BlockKeys()) == 64
    assert pager.open(3, [*tokens[:60], 500], BlockKeys()) == 32
    assert pager.open(4, tokens, BlockKeys("another user")) == 0
    pager.check_integrity()


def test_a_snapshot_is_read_and_never_written() -> None:
    pager = make_pager()
    tokens = list(range(70))
    run(pager, 1, tokens)
    pager.free(1)
    for sequence in (2, 3):
        assert pager.open(sequence, tokens, BlockKeys()) == 64
        assert pager.prepare(sequence, 6)
    first, second = slots(pager, 2), slots(pager, 3)
    assert first[0] == second[0]
    assert len({*first, *second}) == 3
    pager.advance(2, 6)
    pager.free(2)
    pager.advance(3, 6)
    pager.free(3)
    assert pager.open(4, tokens, BlockKeys()) == 64
    assert pager.prepare(4, 6)
    assert slots(pager, 4)[0] == first[0]


def test_steps_that_end_elsewhere_leave_no_snapshot() -> None:
    pager = make_pager()
    tokens = list(range(70))
    assert pager.open(1, tokens, BlockKeys()) == 0
    for count in (20, 30, 20):
        assert pager.prepare(1, count)
        pager.advance(1, count)
    pager.free(1)
    assert pager.open(2, tokens, BlockKeys()) == 0


def test_decoding_leaves_snapshots_too() -> None:
    pager = make_pager()
    tokens = list(range(70))
    run(pager, 1, tokens, chunk=1)
    pager.free(1)
    assert pager.open(2, tokens, BlockKeys()) == 64


def test_the_snapshot_that_was_used_least_recently_is_evicted_first() -> None:
    pager = make_pager(slots=MOST + 2)
    first, second = list(range(40)), list(range(100, 140))
    for sequence, tokens in enumerate((first, second)):
        run(pager, sequence, tokens)
        pager.free(sequence)
    assert pager.open(3, [7, 8, 9, 10], None) == 0
    for _ in range(MOST + 1):
        assert pager.prepare(3, 1)
    pager.free(3)
    assert pager.open(4, second, BlockKeys()) == 32
    pager.free(4)
    assert pager.open(5, first, BlockKeys()) == 0


def test_a_fork_goes_on_from_the_valid_state_of_its_parent_without_a_copy() -> None:
    pager = make_pager()
    tokens = list(range(2 * BLOCK_LEN))
    run(pager, 1, tokens)
    valid = slots(pager, 1)[1]
    assert pager.prepare(1, 1)
    assert pager.fork(1, 2, [*tokens, 5])
    assert pager.prepare(2, 1)
    parent, child = slots(pager, 1), slots(pager, 2)
    assert parent[0] == child[0] == valid
    assert parent[1] != child[1]
    assert pager.copies().size == 0
    pager.advance(1, 1)
    pager.free(1)
    pager.check_integrity()
    pager.advance(2, 1)
    pager.check_integrity()


def test_a_fork_from_no_token_starts_with_no_state() -> None:
    pager = make_pager()
    assert pager.open(1, [1, 2], None) == 0
    assert pager.prepare(1, 1)
    assert pager.fork(1, 2, [3])
    assert pager.prepare(2, 1)
    assert slots(pager, 2)[0] == NO_STATE
    pager.check_integrity()


def test_a_sequence_opens_only_if_all_others_can_keep_their_steps_in_flight() -> None:
    pager = make_pager(slots=2 * MOST - 1)
    assert pager.open(1, [1, 2, 3], None) == 0
    assert pager.open(2, [1, 2, 3], None) is None
    assert pager.prepare(1, 1)
    assert pager.open(2, [1, 2, 3], None) is None
    pager.free(1)
    assert pager.open(2, [1, 2, 3], None) == 0
    pager.check_integrity()


def test_a_step_without_a_free_slot_is_not_planned() -> None:
    pager = make_pager(slots=MOST)
    run(pager, 1, [1, 2, 3])
    for child in (2, 3):
        assert pager.fork(1, child, [1, 2, 3, 4])
    assert not pager.prepare_all({1: 1, 2: 1, 3: 1})
    assert pager.prepare_all({1: 1, 2: 1})
    assert not pager.prepare(3, 1)
    assert (pager.planned(3), pager.length(3)) == (3, 3)
    pager.check_integrity()


def test_a_shortage_of_slots_is_reported() -> None:
    pager = make_pager(slots=2 * MOST)
    assert pager.shortage(40, 2, 32) is None
    assert pager.shortage(40, 3, 32) == (3 * MOST, 2 * MOST)
    assert make_pager(slots=MOST - 1).shortage(1) == (MOST, MOST - 1)


@pytest.mark.parametrize(
    ("start", "count", "fitting"),
    [(0, 31, 31), (0, 32, 32), (0, 50, 32), (0, 70, 64), (33, 20, 20), (60, 9, 4)],
)
def test_a_chunk_ends_at_the_last_snapshot_that_it_passes(start: int, count: int, fitting: int) -> None:
    assert make_pager().fitting(start, count) == fitting
    without = Pager((FULL,), (40,), max_sequences=4, max_len=320, chunk_len=80, snapshot_len=SNAPSHOT)
    assert without.fitting(start, count) == count


def test_a_pool_has_room_for_all_steps_and_for_snapshots() -> None:
    assert pool_slots(4, DEPTH) == 4 * (MOST + SNAPSHOTS)
    assert SNAPSHOT_LEN % BLOCK_LEN == 0
