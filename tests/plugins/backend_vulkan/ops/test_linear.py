"""Products with matrices in formats of each way to store codes and scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from llmd.api import DeviceOptions
from llmd.testing.conformance import cases_for
from llmd.testing.runs import LoadedWorkload
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.vulkan import PhysicalDevice
from llmd_backend_vulkan.weights import VulkanWeights

NAMES = (
    "linear/f32-rows",
    "linear/f16-320",
    "linear/bf16",
    "linear/q8_row-activations-f32",
    "linear/q8_wide-activations-f32",
    "linear/q4-activations-f32",
    "linear/q3_g32-narrow-activations-f32",
    "linear/q2_g64_sym-activations-f32",
    "linear/q5_1-activations-f32",
    "linear/q6_k-activations-f32",
    "linear/iq4_xs-activations-f32",
    "linear/mxfp4-activations-f32",
    "head/scale-softcap-bias",
)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_reference_in_any_batch(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_a_matrix_in_pieces_gives_the_same_bits(physical: PhysicalDevice) -> None:
    cases = {case.name: case for case in cases_for(describe(physical))}
    case = cases["linear/q6_k-activations-f32"]
    outcomes = []
    for most_words in (1 << 20, 1200):
        device = VulkanDevice(physical, DeviceOptions())
        most, device.runtime.most_words = device.runtime.most_words, most_words
        with LoadedWorkload(device, case) as loaded:
            device.runtime.most_words = most
            (weights,) = loaded._loaded
            assert isinstance(weights, VulkanWeights)
            matrices = weights.loaded.matrices.values()
            outcomes.append((max(len(one.pieces) for one in matrices), loaded.run(all_at_once(case)).rows))
    (whole, expected), (cut, rows) = outcomes
    assert whole == 1
    assert cut > 1
    assert all(np.array_equal(rows[place], expected[place]) for place in expected)
