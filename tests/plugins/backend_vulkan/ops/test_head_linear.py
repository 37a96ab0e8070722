"""Products with a matrix for each head, of odd sizes and in each kind of format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import StageLimits
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for
from llmd.testing.plans import TinyModel
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.ops.head_linear import GROUPS, PRODUCTS, SLICES, head_linear_words

NAMES = ("head_linear/f16-wide", "head_linear/two-of-one-tensor")
SLOW = (
    "head_linear/f32",
    "head_linear/bf16",
    "head_linear/q8-activations-f32",
    "head_linear/q6_k-activations-f32",
    "head_linear/fp8",
    "head_linear/nvfp4",
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_memory_is_that_of_the_largest_op(device: VulkanDevice) -> None:
    case = next(case for case in cases_for(device.info) if case.name == "head_linear/f16-wide")
    limits = StageLimits(10, 1, 1)
    words = head_linear_words(lower(case.plan, 1, 2, format_of=lambda _kind, _ref: "f32"), limits)
    assert words == {SLICES: 3 * 10 * 72, PRODUCTS: 3 * 10 * 100, GROUPS: 3 * 10 * 4}
    plan = TinyModel().plan()
    dense = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    assert head_linear_words(dense, limits) == {}
