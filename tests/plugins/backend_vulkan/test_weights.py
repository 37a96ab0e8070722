"""Weights are loaded once, in the layouts of their uses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import Program, StageLimits, Weight, WeightData
from llmd.api.expert_ops import Experts, Router
from llmd.api.streaming import streamed_weights
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.runtime import Runtime
from llmd_backend_vulkan.tickets import TicketMemory
from llmd_backend_vulkan.vulkan import PhysicalDevice
from llmd_backend_vulkan.weights import VulkanWeights, load_weights, weight_factors, weight_uses


class CountingSource(RandomSource):
    """A source that notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def read(self, weight: Weight) -> WeightData:
        self.names.append(weight.ref.name)
        return super().read(weight)


def program_of(first: int, last: int, *, tied: bool = False, streamed: tuple[int, ...] = ()) -> Program:
    """Return some parts of the small model."""
    plan = TinyModel(tied=tied).plan()
    return lower(plan, first, last, format_of=lambda _kind, _ref: "f16", activations="f32", streamed=streamed)


def load(arena: Arena, program: Program, source: RandomSource, *have: VulkanWeights) -> VulkanWeights:
    """Load a program's weights."""
    return load_weights(arena, program, source, lambda _done, _total: None, have)


def test_each_weight_is_read_once(arena: Arena) -> None:
    source, program = CountingSource(), program_of(0, 10)
    weights = load(arena, program, source)
    assert len(source.names) == len(program.weights)
    weights.close()
    weights.close()
    with pytest.raises(ValueError, match="closed"):
        weights.stage({0: 1, 1: 1}, StageLimits(1, 1, 1))


def test_progress_reaches_the_bytes_of_all_weights(arena: Arena) -> None:
    seen: list[tuple[int, int]] = []
    note: Callable[[int, int], None] = lambda done, total: seen.append((done, total))  # noqa: E731
    program = program_of(0, 3)
    load_weights(arena, program, RandomSource(), note, ())
    total = sum(weight.num_bytes for weight in program.weights)
    assert seen[-1] == (total, total)


def test_weights_of_another_program_are_shared(arena: Arena) -> None:
    first = load(arena, program_of(0, 4), RandomSource())
    source = CountingSource()
    both = load(arena, program_of(0, 6), source, first)
    mine = {weight.ref.name for weight in program_of(0, 4).weights}
    assert source.names
    assert not mine & set(source.names)
    first.close()
    assert both.loaded.resident.matrices.keys() > set()


def test_a_table_that_is_also_the_head_is_stored_once(arena: Arena) -> None:
    program = program_of(0, 10, tied=True)
    (tied,) = [i for i, weight in enumerate(program.weights) if weight.ref.name == "embed"]
    assert weight_uses(program)[tied] == {"matrix"}


def test_members_of_a_stack_are_read_one_by_one(arena: Arena) -> None:
    plan = TinyModel(experts=6).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f16", activations="f32")
    source = CountingSource()
    weights = load(arena, program, source)
    stacks = [weight for weight in program.weights if weight.ref.is_stack and weight.ref.is_matrix]
    assert stacks
    for weight in stacks:
        assert source.names.count(weight.ref.name) == weight.ref.view_shape[0]
        assert weights.loaded.resident.matrices[weight].height == weight.ref.view_shape[1]


def test_a_router_multiplies_by_its_first_weight_only() -> None:
    plan = TinyModel(experts=6).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f16", activations="f32")
    uses, factors = weight_uses(program), weight_factors(program)
    for slotted in program.ops:
        if isinstance(slotted.op, Router | Experts):
            matrices = range(1) if isinstance(slotted.op, Router) else range(0, 6, 2)
            for place, index in enumerate(slotted.weights):
                assert index is None or uses[index] == {"matrix" if place in matrices else "vector"}
                assert index is None or (index in factors) == (place in matrices)


def test_bytes_are_those_of_a_stage(arena: Arena) -> None:
    weights = load(arena, program_of(0, 10), RandomSource())
    assert weights.kv_bytes(0, "f16") == 2 * 2 * 16 * 2 * 12 * 2
    limits = StageLimits(8, 2, 2)
    held = arena.take(1)
    before = arena.free_bytes
    stage = weights.stage({0: 0, 1: 0}, limits)
    pools = sum(weights.kv_bytes(group, "f16") for group in (0, 1))  # a pool has room for at least one block
    in_main_memory = 4 * limits.tickets * TicketMemory.num_words(program_of(0, 10), limits)
    assert before - arena.free_bytes - pools == weights.step_bytes(limits) - in_main_memory
    stage.close()
    assert arena.free_bytes == before
    assert held.num_words == 64


@pytest.mark.parametrize("use_additions", [True, False], ids=["additions", "plain"])
def test_streamed_weights_take_memory_of_the_device_for_two_parts(
    physical: PhysicalDevice, *, use_additions: bool
) -> None:
    arena = Arena(Runtime(physical, "vulkan:0", use_additions=use_additions))
    program = program_of(0, 10, streamed=(1, 2, 3, 4))
    weights = load(arena, program, RandomSource())
    streamed = {program.weights[index] for part in streamed_weights(program).values() for index in part}
    assert weights.loaded.streamed.matrices.keys() | weights.loaded.streamed.vectors.keys() == streamed
    assert not weights.loaded.resident.matrices.keys() & streamed
    limits = StageLimits(8, 2, 2)
    held = arena.take(1)
    before = arena.num_bytes - arena.free_bytes
    stage = weights.stage({0: 0, 1: 0}, limits)
    pools = sum(weights.kv_bytes(group, "f16") for group in (0, 1))
    in_main_memory = 4 * limits.tickets * TicketMemory.num_words(program, limits)
    taken = arena.num_bytes - arena.free_bytes - before
    assert taken - pools == weights.step_bytes(limits) - in_main_memory
    resident = load(arena, program_of(0, 10), RandomSource()).step_bytes(limits)
    assert (weights.step_bytes(limits) > resident) == use_additions
    stage.close()
    assert arena.num_bytes - arena.free_bytes == before
    assert held.num_words == 64


def test_weights_in_another_memory_are_read_again(arena: Arena) -> None:
    resident = load(arena, program_of(0, 4), RandomSource())
    source, program = CountingSource(), program_of(0, 4, streamed=(1,))
    load(arena, program, source, resident)
    assert source.names == [program.weights[i].ref.name for i in streamed_weights(program)[1]]
