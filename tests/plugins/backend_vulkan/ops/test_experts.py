"""Mixtures of experts: in each kind of format, in pieces, and with many experts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs

from llmd.api import DeviceOptions, Experts, Router, StageLimits, TensorRef
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for, check_case
from llmd.testing.plans import TinyModel
from llmd.testing.runs import LoadedWorkload
from llmd.testing.workload import Workload, all_at_once
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.matrices import DeviceMatrix
from llmd_backend_vulkan.ops.experts import GATES, GROUPS, OUTPUTS, UPS, experts_words, most_groups
from llmd_backend_vulkan.vulkan import PhysicalDevice
from llmd_backend_vulkan.weights import VulkanWeights

NAMES = ("experts/limit", "experts/ungated", "experts/q4-activations-f32")
SLOW = (
    "experts/mxfp4-activations-f32",
    "experts/fp8",
    "experts/nvfp4",
    "experts/gated",
    "experts/one",
    "experts/all",
    "experts/few-of-many",
    "experts/biases",
    "experts/f16",
    "experts/bf16",
    "experts/q8_wide-activations-f32",
    "experts/q6_k-activations-f32",
    "experts/q3_g32-activations-f32",
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def case_of(physical: PhysicalDevice, name: str) -> Workload:
    """Return a case of the conformance suite."""
    return next(case for case in cases_for(describe(physical)) if case.name == name)


def with_experts(case: Workload, num_experts: int) -> Workload:
    """Return a case of experts without gates with another number of small experts."""
    before, tested, after = case.plan.parts
    router, mixture = tested.ops
    assert isinstance(router, Router)
    assert isinstance(mixture, Experts)
    ops = (
        structs.replace(router, weight=TensorRef("router", (num_experts, 48)), correction=None),
        structs.replace(
            mixture,
            up=TensorRef("up", (num_experts, 5, 48), is_stack=True),
            down=TensorRef("down", (num_experts, 48, 5), is_stack=True),
        ),
    )
    parts = (before, structs.replace(tested, ops=ops), after)
    return structs.replace(case, plan=structs.replace(case.plan, parts=parts))


def test_a_thread_may_count_the_rows_of_several_experts(
    device: VulkanDevice, physical: PhysicalDevice
) -> None:
    results = list(check_case(device, with_experts(case_of(physical, "experts/ungated"), 300)))
    assert [result for result in results if result.problem] == []


@pytest.mark.parametrize(
    ("name", "most_words"),
    [
        ("ungated", 9000),
        pytest.param("ungated", 2000, marks=pytest.mark.exhaustive),
        pytest.param("q6_k-activations-f32", 1 << 15, marks=pytest.mark.exhaustive),
        pytest.param("q8_wide-activations-f32", 12000, marks=pytest.mark.exhaustive),
    ],
)
def test_a_stack_in_pieces_gives_the_same_bits(physical: PhysicalDevice, name: str, most_words: int) -> None:
    """A piece has some members, or some rows of a member if none fits in a buffer."""
    case = case_of(physical, f"experts/{name}")
    outcomes = []
    for words in (1 << 20, most_words):
        device = VulkanDevice(physical, DeviceOptions())
        most, device.runtime.most_words = device.runtime.most_words, words
        with LoadedWorkload(device, case) as loaded:
            device.runtime.most_words = most
            (weights,) = loaded._loaded
            assert isinstance(weights, VulkanWeights)
            stacks = [one for one in weights.loaded.resident.matrices.values() if _is_stack(one)]
            outcomes.append((stacks, loaded.run(all_at_once(case)).rows))
    (whole, expected), (cut, rows) = outcomes
    assert all(len(one.pieces) == 1 for one in whole)
    assert any(len(one.pieces) > 1 for one in cut)
    assert all(np.array_equal(rows[place], expected[place]) for place in expected)


def _is_stack(matrix: DeviceMatrix) -> bool:
    return matrix.pieces[-1].first_member + matrix.pieces[-1].num_members > 1


def test_groups_have_room_however_rows_use_experts() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        num_experts, rows, group_rows = draw.integers(1, 20, 3)
        top_k = int(draw.integers(1, num_experts + 1))
        used = [draw.permutation(num_experts)[:top_k] for _ in range(rows)]
        counts = np.bincount(np.concatenate(used), minlength=num_experts)
        groups = int((-(-counts // group_rows)).sum())
        assert groups <= most_groups(rows * top_k, int(num_experts), int(group_rows))
    assert most_groups(8, 128, 8) == 8


def test_memory_is_that_of_the_largest_mixture(physical: PhysicalDevice) -> None:
    ungated, gated = (case_of(physical, f"experts/{name}") for name in ("ungated", "gated"))
    limits = StageLimits(10, 1, 1)
    words = []
    for case in (ungated, gated):
        program = lower(case.plan, 1, 2, format_of=lambda _kind, _ref: "f32")
        words.append(experts_words(program, limits))
    assert words[0][GATES] == 0
    assert words[0][UPS] == 10 * 3 * 56
    assert words[1][GATES] == words[1][UPS] == 10 * 3 * 40
    assert words[1][OUTPUTS] == 10 * 3 * 48
    assert words[1][GROUPS] == 10 * 3 * 4
    plan = TinyModel().plan()
    assert experts_words(lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32"), limits) == {}
