"""Hyper-connections with few streams and with as many as a work group mixes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import HIDDEN, CollapseStreams, Linear, MixStreams, StageLimits, StreamWeights, TensorRef
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for, check_case
from llmd.testing.op_cases import part_case
from llmd.testing.plans import TinyModel
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.ops.streams import MAX_STREAMS, PRODUCTS, streams_words

NAMES = ("mix_streams/4-20", "mix_streams/3-1", "collapse_streams/5")
SLOW = ("mix_streams/2-2", "mix_streams/1-3", "collapse_streams/4")


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_a_work_group_mixes_its_most_streams(device: VulkanDevice) -> None:
    width, slice_width = 48, 48 // MAX_STREAMS
    outs = MAX_STREAMS * (MAX_STREAMS + 2)
    tensors = TensorRef("fn", (outs, width)), TensorRef("base", (outs,)), TensorRef("scale", (3,))
    ops = (
        StreamWeights(HIDDEN, "weights", *tensors, MAX_STREAMS, 1e-3, 1e-4, 7),
        CollapseStreams(HIDDEN, "weights", "x", MAX_STREAMS),
        Linear("x", ("y",), (TensorRef("inner", (slice_width, slice_width)),), (None,)),
        MixStreams(HIDDEN, "y", "weights", HIDDEN, MAX_STREAMS),
    )
    case = part_case("mix_streams/most", ops, max_nmse=1e-9, width=width)
    assert [result for result in check_case(device, case) if result.problem] == []


def test_memory_is_that_of_the_largest_op(device: VulkanDevice) -> None:
    case = next(case for case in cases_for(device.info) if case.name == "mix_streams/3-1")
    limits = StageLimits(10, 1, 1)
    assert streams_words(lower(case.plan, 1, 2, format_of=lambda _kind, _ref: "f32"), limits) == {
        PRODUCTS: 160
    }
    plan = TinyModel().plan()
    dense = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    assert streams_words(dense, limits) == {PRODUCTS: 0}
