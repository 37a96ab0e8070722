"""Which experts have slots: room, the least recently used ones, and how much is copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd_backend_cuda.expert_slots import COPIED_PART, ExpertSlots, Move

SIZE = 1000


def flags(count: int, experts: Sequence[int]) -> NDArray[np.bool_]:
    found = np.zeros(count, np.bool_)
    found[list(experts)] = True
    return found


class Bench:
    """Slots, and a device that has an expert as soon as it is copied."""

    def __init__(self, sizes: Sequence[int], budget: int) -> None:
        self.count = len(sizes)
        self.slots = ExpertSlots(sizes, budget)
        self.held = dict(self.slots.owners())

    def step(self, *used: int) -> list[Move]:
        wanted, held = flags(self.count, used), flags(self.count, list(self.held))
        self.slots.note(wanted, wanted & ~held)
        moves = self.slots.moves()
        for move in moves:
            assert self.held.pop(move.evicted) == move.slot
            self.held[move.expert] = move.slot
        return moves


@pytest.mark.parametrize(
    ("budget", "owners"),
    [(0, []), (999, []), (3 * SIZE, [0, 2, 5]), (8 * SIZE, list(range(8))), (99 * SIZE, list(range(8)))],
)
def test_slots_have_room_for_as_many_experts_as_the_budget_and_spread_over_layers(
    budget: int, owners: list[int]
) -> None:
    slots = ExpertSlots([SIZE] * 8, budget)
    assert list(slots.owners()) == [(expert, slot) for slot, expert in enumerate(owners)]
    assert slots.num_bytes == SIZE * len(owners) <= budget
    assert slots.offsets.tolist() == [SIZE * slot for slot in range(len(owners))]


def test_blocks_of_each_size_have_slots_in_proportion_to_their_bytes() -> None:
    slots = ExpertSlots([100] * 4 + [300] * 4, 800)
    assert [expert for expert, _ in slots.owners()] == [0, 2, 4, 6]
    assert slots.offsets.tolist() == [0, 100, 200, 500]
    assert slots.num_bytes == 800


def test_the_least_recently_used_expert_gives_its_slot_to_one_that_was_missed() -> None:
    bench = Bench([SIZE] * 8, 2 * SIZE)
    assert bench.held == {0: 0, 4: 1}
    bench.step(0)
    bench.step(4)
    bench.step(0)
    assert bench.step(7) == []  # a step that misses one block allows a part of it
    for _ in range(COPIED_PART - 2):
        assert bench.step(7) == []
    assert bench.step(7) == [Move(7, 1, 4)]
    assert bench.step(7) == []


def test_at_most_a_part_of_what_steps_have_read_is_copied() -> None:
    draw = np.random.default_rng(0)
    bench = Bench([SIZE] * 64, 16 * SIZE)
    read = copied = 0
    for _ in range(200):
        used = draw.permutation(64)[:8].tolist()
        read += SIZE * len(set(used) - bench.held.keys())
        copied += SIZE * len(bench.step(*used))
        assert copied <= read // COPIED_PART
    assert copied > read // COPIED_PART // 2


def test_experts_that_texts_use_often_come_into_slots_and_stay() -> None:
    draw = np.random.default_rng(0)
    bench = Bench([SIZE] * 64, 16 * SIZE)
    often = draw.permutation(64)[:12].tolist()
    for _ in range(120):
        bench.step(*draw.permutation(often)[:4].tolist(), int(draw.integers(64)))
    assert set(often) <= bench.held.keys()


def test_a_step_that_uses_all_experts_copies_nothing() -> None:
    bench = Bench([SIZE] * 64, 16 * SIZE)
    before = dict(bench.held)
    assert [bench.step(*range(64)) for _ in range(4)] == [[]] * 4
    assert bench.held == before


def test_the_experts_of_all_layers_have_their_turn() -> None:
    bench = Bench([SIZE] * 64, 16 * SIZE)
    copied = [[move.expert for move in bench.step(*range(1, 64, 4))] for _ in range(3)]
    assert copied == [[1, 5], [9], [13, 17]]


def test_misses_are_forgotten_if_there_is_no_room_for_them() -> None:
    bench = Bench([SIZE] * 8, 2 * SIZE)
    for _ in range(4):
        bench.step(1, 2, 3)
    moved = {move.expert for move in bench.step(5, 6, 7)}
    assert moved <= {5, 6, 7}


def test_blocks_of_a_size_without_slots_do_not_stop_others() -> None:
    bench = Bench([100] * 8 + [5000], 1000)
    assert {bench.slots.offsets.size} == {1}
    assert bench.step(8, 2)[0].expert == 2  # the large one allows to copy some hundred bytes


def test_nothing_is_copied_without_slots() -> None:
    bench = Bench([SIZE] * 4, 10)
    assert bench.step(0, 1, 2, 3) == []
    assert ExpertSlots([], 100).num_bytes == 0
