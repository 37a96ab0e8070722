"""Generated histories of a pager on a simulated device, with the invariants that hold at any time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmd.api import BLOCK_LEN, KVGroup
from llmd.pager.block_keys import BlockKeys
from llmd.pager.pager import NO_BLOCK, Copies, Pager
from llmd.pager.states import NO_STATE

FULL = KVGroup(0, None, 2, 8, (0, 2))
WINDOW = KVGroup(1, 24, 2, 8, (1, 3))
QUARTER = KVGroup(2, None, 1, 8, (6,), kind="latent", stride=4)
SELDOM = KVGroup(3, None, 1, 8, (7,), kind="latent", stride=48)
STATE = KVGroup(4, None, 0, 0, (4, 5), kind="state", state_bytes=8)
WITH_BLOCKS, SIZES = (FULL, WINDOW, QUARTER, SELDOM), (30, 20, 30, 12, 12)
MAX_LEN, CHUNK, DEPTH = 320, 40, 2


class Flight(NamedTuple):
    """A step in flight: the copies that it does first, and what it writes.

    A write is (sequence, its row of each table, its tokens, first position, count).
    """

    copies: Copies
    writes: list[tuple[int, tuple[Copies, ...], tuple[int, ...], int, int]]


class Contents:
    """Contents of a simulated device: for each place of a block, the tokens up to the one that wrote its
    vector; for each slot, the tokens of its state.
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
            for group, table in zip(WITH_BLOCKS, tables, strict=True):
                for position in range(start, start + count):
                    place = _place(group, table, position)
                    if (position + 1) % group.stride == 0:
                        self.places[place] = tokens[: position + 1]

    def check(self, pager: Pager, sequence: int, tokens: Sequence[int]) -> None:
        """Check that all that the next token reads is present and was written for exactly these tokens."""
        length = pager.length(sequence)
        *tables, slots = pager.tables([sequence])
        assert self.states[int(slots[0, 1])] == tuple(tokens[:length])
        for group, table in zip(WITH_BLOCKS, tables, strict=True):
            first = 0 if group.window is None else max(0, length - group.window + 1)
            for position in range(first, length):
                if (position + 1) % group.stride == 0:
                    held = self.places[_place(group, table, position)]
                    assert held == tuple(tokens[: position + 1])


def _place(group: KVGroup, table: Copies, position: int) -> tuple[int, int, int]:
    """Return where the vector is that the token at a position belongs to: group, block, place in it."""
    block = int(table[0, position // group.block_tokens])
    assert block != NO_BLOCK
    return group.id, block, position % group.block_tokens // group.stride


class PagerHistory(RuleBasedStateMachine):
    """Open, fork, grow and free in any order, with up to two steps in flight on a simulated device."""

    def __init__(self) -> None:
        super().__init__()
        self.pager = Pager(
            (*WITH_BLOCKS, STATE),
            SIZES,
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

    @invariant()
    def every_block_has_one_state(self) -> None:
        for group, pool in zip(self.pager.blocks(), self.pager.pools, strict=True):
            states = [state for state, count in group.map for _ in range(count)]
            assert len(states) == pool.num_blocks
            assert all(before[0] != after[0] for before, after in itertools.pairwise(group.map))
            assert states.count("free") + states.count("cached") == pool.num_free
            assert states.count("cached") == len(pool.cached())
            references = [min(pool.references(block), 2) for block in range(pool.num_blocks)]
            assert [
                ("free", "used", "shared").index(one.replace("cached", "free")) for one in states
            ] == references

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
        assert [pool.num_free for pool in self.pager.pools] == [*SIZES]
