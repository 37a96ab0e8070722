"""Streamed weights are in memory of the host, and are found in slots of the device."""

from __future__ import annotations

import pytest

from llmd.api import Program
from llmd.api.streaming import streamed_weights
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.memory import ALIGNMENT, Arena
from llmd_backend_vulkan.streaming import (
    NUM_SLOTS,
    Placed,
    WeightStream,
    slot_words,
    slots_bytes,
    units_of,
)
from llmd_backend_vulkan.weights import VulkanWeights, load_weights


def program_of(streamed: tuple[int, ...]) -> Program:
    """Return the small model, some parts of which are streamed; the head is part 9."""
    plan = TinyModel().plan()
    return lower(
        plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f16", activations="f32", streamed=streamed
    )


def loaded(arena: Arena, program: Program) -> VulkanWeights:
    """Load the weights of a program."""
    return load_weights(arena, program, RandomSource(), lambda _done, _total: None, ())


def test_the_head_is_apart_from_the_other_ops_of_its_part() -> None:
    program = program_of((2, 9))
    body, head = (units_of(program, head=head) for head in (False, True))
    assert sorted(body) == [2, 9]
    assert sorted(head) == [9]
    assert sorted(body[9] + head[9]) == sorted(streamed_weights(program)[9])


def test_a_slot_has_room_for_the_largest_part(arena: Arena) -> None:
    program = program_of((1, 2, 3))
    placed = loaded(arena, program).placed()
    (alone,) = slot_words(program, placed, arena.runtime.most_words)
    assert slots_bytes(program, placed, arena.runtime.most_words) == 4 * NUM_SLOTS * alone
    pieces = [
        piece.region.num_words
        for unit in units_of(program, head=False).values()
        for index in unit
        for piece in getattr(placed.matrices[index], "pieces", ())
    ]
    in_buffers = slot_words(program, placed, max(pieces))
    assert len(in_buffers) > 1
    assert max(in_buffers) == max(pieces)
    assert sum(in_buffers) >= alone - ALIGNMENT


def test_one_streamed_part_needs_one_slot(arena: Arena) -> None:
    program = program_of((2,))
    placed, most_words = loaded(arena, program).placed(), arena.runtime.most_words
    assert slots_bytes(program, placed, most_words) == 4 * sum(slot_words(program, placed, most_words))
    resident = program_of(())
    assert slots_bytes(resident, loaded(arena, resident).placed(), most_words) == 0


def test_parts_take_turns_with_the_slots(arena: Arena) -> None:
    program = program_of((1, 2, 3, 9))
    stream = WeightStream(arena, program, loaded(arena, program).placed())
    slots = [stream.body.copies[part][0] for part in (1, 2, 3, 9)] + [stream.head.copies[9][0]]
    assert slots[0] is slots[2] is slots[4]
    assert slots[1] is slots[3] is not slots[0]


def test_copies_fill_the_places_that_shaders_read(arena: Arena) -> None:
    program = program_of((1, 2))
    weights = loaded(arena, program)
    before, after = weights.placed(), WeightStream(arena, program, weights.placed()).body
    for part, unit in units_of(program, head=False).items():
        copied = {(one.source.number, one.at): (one.target, one.target_at) for one in after.copies[part][1]}
        for index in unit:
            source, target = before.vectors[index], after.vectors[index]
            if source is not None and target is not None:
                assert copied[source.buffer.number, source.at] == (target.buffer, target.at)
            matrix, other = before.matrices[index], after.matrices[index]
            assert (matrix is None) == (other is None)
            if matrix is not None and other is not None:
                for one, two in zip(matrix.pieces, other.pieces, strict=True):
                    place = copied[one.region.buffer.number, one.region.at]
                    assert place == (two.region.buffer, two.region.at)
                    assert two.low_at - two.region.at == one.low_at - one.region.at


@pytest.mark.parametrize("part", [None, 4])
def test_a_segment_knows_what_fills_its_slot(arena: Arena, part: int | None) -> None:
    slot = arena.runtime.slot()
    segment = Placed((), (), {4: (slot, ())}).segment(part, [], "layers")
    assert (segment.name, segment.slot) == (("layers", None) if part is None else ("part 4", slot))
