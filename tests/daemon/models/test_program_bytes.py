from __future__ import annotations

from msgspec import structs

from llmd.api.device import HOST_MEMORY
from llmd.models.lowering import lower
from llmd.models.program_bytes import (
    absent_bytes,
    expert_bytes,
    main_memory_expert_bytes,
    resident_bytes,
    stream_buffer_bytes,
    streamed_bytes,
    with_expert_share,
)
from llmd.testing.null_device import NullDevice
from llmd.testing.plans import TinyModel

PLAN = TinyModel().plan()


def sizes(*streamed: int) -> tuple[int, int, int]:
    """Return bytes of resident weights, of streamed weights, and of buffers."""
    program = lower(PLAN, 0, len(PLAN.parts), format_of=lambda _kind, _ref: "f32", streamed=streamed)
    return resident_bytes(program), streamed_bytes(program), stream_buffer_bytes(program)


def part_bytes(part: int) -> int:
    program = lower(PLAN, part, part + 1, format_of=lambda _kind, _ref: "f32")
    return sum(weight.num_bytes for weight in program.weights)


def test_streamed_weights_leave_the_device_but_for_two_parts() -> None:
    whole, nothing, no_buffers = sizes()
    assert (nothing, no_buffers) == (0, 0)
    mixer, ffn = part_bytes(1), part_bytes(2)
    assert sizes(1, 2, 3) == (whole - 2 * mixer - ffn, 2 * mixer + ffn, 2 * max(mixer, ffn))


def test_a_single_streamed_part_has_one_buffer() -> None:
    whole, _, _ = sizes()
    assert sizes(2) == (whole - part_bytes(2), part_bytes(2), part_bytes(2))


def test_experts_without_room_are_not_resident() -> None:
    plan = TinyModel(experts=4).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    whole = expert_bytes(program)
    assert 0 < whole < resident_bytes(program)
    half = with_expert_share(program, 0.5)
    assert (half.expert_bytes, absent_bytes(half)) == (whole // 2, whole - whole // 2)
    assert resident_bytes(half) == resident_bytes(program) - absent_bytes(half)
    assert with_expert_share(program, 1.0) == program


def test_all_experts_are_in_main_memory_if_a_device_with_its_own_has_only_some() -> None:
    plan = TinyModel(experts=4).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    half, card = with_expert_share(program, 0.5), NullDevice(lambda: 0.0).info
    assert main_memory_expert_bytes(half, card) == expert_bytes(program)
    assert main_memory_expert_bytes(program, card) == 0
    assert main_memory_expert_bytes(half, structs.replace(card, memory_id=HOST_MEMORY)) == 0


def test_program_without_experts_has_no_share_of_them() -> None:
    program = lower(PLAN, 0, len(PLAN.parts), format_of=lambda _kind, _ref: "f32")
    assert with_expert_share(program, 0.5) == program
