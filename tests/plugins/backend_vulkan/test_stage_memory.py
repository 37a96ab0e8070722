"""The memory of a stage is one region and its pools."""

from __future__ import annotations

import itertools

import msgspec

from llmd.api import StageLimits
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.stage_memory import StageMemory
from llmd_backend_vulkan.streaming import Placed
from tests.plugins.backend_vulkan.test_step_memory import program

LIMITS = StageLimits(max_rows=40, max_sequences=3, max_outputs=5)


def test_words_are_counted_before_they_are_taken(arena: Arena) -> None:
    first = arena.take(64)
    before = arena.free_bytes + 4 * first.num_words
    memory = StageMemory(arena, program(), {0: 0, 1: 0, 2: 0}, LIMITS)
    pools = sum(4 * region.num_words for pool in memory.pools.values() for region in pool.layers)
    taken = before - arena.free_bytes - 4 * first.num_words - pools
    assert taken == 4 * StageMemory.num_words(program(), LIMITS)


def test_slots_have_room_for_all_rows(arena: Arena) -> None:
    of = program()
    memory = StageMemory(arena, of, {0: 2, 1: 2, 2: 2}, LIMITS)
    places = [memory.slot(index) for index in range(len(of.slot_widths))]
    for width, (place, following) in zip(of.slot_widths, itertools.pairwise(places), strict=False):
        assert following - place >= LIMITS.max_rows * width
    assert memory.outputs(0).raw > places[-1]
    assert memory.outputs(1).raw > memory.outputs(0).raw + LIMITS.max_outputs * 132


def test_more_output_rows_take_more_memory() -> None:
    more = msgspec.structs.replace(LIMITS, max_outputs=50)
    assert StageMemory.num_words(program(), more) > StageMemory.num_words(program(), LIMITS) + 45 * 131


def test_a_context_is_that_of_its_bucket(arena: Arena) -> None:
    memory = StageMemory(arena, program(), {0: 2, 1: 2, 2: 2}, LIMITS)
    context = memory.context(4, 0, Placed((), ()))
    assert context.rows == 4
    assert context.counts == context.step_at
    assert context.place("token_ids") > context.place("output_rows")
