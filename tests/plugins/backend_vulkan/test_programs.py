"""Ops that do not depend on each other share a phase, and patterns of ops have fewer phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Add, Instruction, Norm, SlottedOp, StageLimits
from llmd.api.program import Pattern
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.programs import PATTERNS, Uses, add_is_fused, body_phases, joined
from tests.plugins.backend_vulkan.test_stage import last_row, step_of


def op(reads: tuple[int, ...], writes: tuple[int, ...]) -> SlottedOp:
    """Return an op of which only the slots matter."""
    return SlottedOp(Add("a", "b", "c"), reads, writes)


def uses(reads: tuple[int, ...], writes: tuple[int, ...]) -> Uses:
    """Return the slots of an op."""
    return Uses.of(op(reads, writes))


def phase(name: str) -> list[Dispatch]:
    """Return a phase of one dispatch."""
    return [Dispatch(Shader(name), (), (), (1, 1, 1))]


def names(phases: Sequence[Sequence[Dispatch]]) -> list[list[str]]:
    """Return the names of the shaders of phases."""
    return [[one.shader.name for one in dispatches] for dispatches in phases]


def test_independent_ops_share_a_phase() -> None:
    q, k, attend = uses((0,), (1,)), uses((2,), (3,)), uses((1, 3), (4,))
    items = [(q, [phase("q")]), (k, [phase("k")]), (attend, [phase("a")])]
    assert names(joined(items)) == [["q", "k"], ["a"]]


def test_a_slot_is_not_written_while_it_is_read_or_written() -> None:
    reads_first = [(uses((0,), (1,)), [phase("x")]), (uses((2,), (0,)), [phase("y")])]
    writes_twice = [(uses((0,), (1,)), [phase("x")]), (uses((2,), (1,)), [phase("y")])]
    assert names(joined(reads_first)) == names(joined(writes_twice)) == [["x"], ["y"]]


def test_an_item_of_several_phases_begins_after_the_one_before_it() -> None:
    several = (uses((2,), (3,)), [phase("store"), phase("attend")])
    items = [(uses((0,), (1,)), [phase("x")]), several, (uses((4,), (5,)), [phase("z")])]
    assert names(joined(items)) == [["x"], ["store"], ["attend", "z"]]


def test_slots_of_several_ops_are_those_of_all() -> None:
    both = Uses.of(SlottedOp(Norm("x", "y", None, 1e-6), (0,), (1,), (None, None)), op((1, 2), (3,)))
    assert both == Uses(frozenset({0, 1, 2}), frozenset({1, 3}))


def test_an_add_is_fused_if_it_alone_reads_the_product() -> None:
    def instruction(inputs: tuple[int, int], outputs: tuple[int, ...]) -> Instruction:
        return Instruction((op((0,), (1,)), op(inputs, (2,))), 0, outputs)

    assert add_is_fused(instruction((5, 1), (2,)))
    assert not add_is_fused(instruction((1, 5), (2,)))
    assert not add_is_fused(instruction((1, 1), (2,)))
    assert not add_is_fused(instruction((5, 1), (1, 2)))


def phases_and_logits(device: VulkanDevice, patterns: tuple[Pattern, ...]) -> tuple[int, np.ndarray]:
    """Return the phases of the small model, and the logits of a step."""
    plan = TinyModel().plan()
    program = lower(
        plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", activations="f32", patterns=patterns
    )
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    stage = weights.stage({0: 2, 1: 2}, StageLimits(8, 1, 1))
    context = stage._memory.context(8, 0, stage._weights)
    ticket = stage.submit(step_of([3, 1, 4, 1, 5], 0, [1]), None, last_row(5))
    stage.wait(ticket, 60.0)
    ((_, phases),) = body_phases(context)
    found = len(phases), stage.raw_rows(ticket, np.zeros(1, np.int32))
    stage.close()
    weights.close()
    return found


def test_patterns_have_fewer_phases_and_the_same_bits(device: VulkanDevice) -> None:
    plain, expected = phases_and_logits(device, ())
    fused, found = phases_and_logits(device, PATTERNS)
    layers, saved = 4, 3  # two residual adds, and the rotation of keys
    assert plain - fused == layers * saved
    assert np.array_equal(found, expected)
