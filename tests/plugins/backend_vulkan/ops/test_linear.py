"""Products with matrices in formats of each way to store codes and scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from llmd.api import DeviceOptions, TensorRef, Weight
from llmd.testing.conformance import cases_for
from llmd.testing.runs import LoadedWorkload
from llmd.testing.sources import RandomSource
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.buckets import bucket_of
from llmd_backend_vulkan.commands import MOST_WORK
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.matrices import load_matrix
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.ops import linear as products
from llmd_backend_vulkan.ops.linear import cut_by_work, distinct_tiles, tile_of
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
    for most_words in (1 << 20, 12000):
        device = VulkanDevice(physical, DeviceOptions())
        most, device.runtime.most_words = device.runtime.most_words, most_words
        with LoadedWorkload(device, case) as loaded:
            device.runtime.most_words = most
            (weights,) = loaded._loaded
            assert isinstance(weights, VulkanWeights)
            matrices = weights.loaded.resident.matrices.values()
            outcomes.append((max(len(one.pieces) for one in matrices), loaded.run(all_at_once(case)).rows))
    (whole, expected), (cut, rows) = outcomes
    assert whole == 1
    assert cut > 1
    assert all(np.array_equal(rows[place], expected[place]) for place in expected)


def test_large_products_are_cut_into_submissions(arena: Arena) -> None:
    matrix = load_matrix(arena, RandomSource().read(Weight(TensorRef("m", (100, 512)), "q5_k")))
    rows = int(MOST_WORK / (512 * 30))
    parts = list(cut_by_work(matrix, rows))
    assert [(part.first, part.num_rows) for part in parts] == [(0, 25), (25, 25), (50, 25), (75, 25)]
    (whole,) = cut_by_work(matrix, 1)
    assert [part.low_at - whole.low_at for part in parts] == [0, 25 * 64, 50 * 64, 75 * 64]
    assert parts[1].high_at - whole.high_at == 25 * 16
    assert parts[1].scales_at - whole.scales_at == 25 * whole.row_scales
    assert parts[1].coarse_at - whole.coarse_at == 25 * whole.row_coarse


def test_a_product_that_is_cut_by_work_has_the_same_bits(
    physical: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in cases_for(describe(physical)) if case.name == "linear/q3-activations-f32")
    rows = []
    for most in (MOST_WORK, 1e5):
        monkeypatch.setattr(products, "MOST_WORK", most)
        with LoadedWorkload(VulkanDevice(physical, DeviceOptions()), case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])


def test_few_numbers_of_rows_have_all_tiles() -> None:
    assert distinct_tiles(5) == (1, 2, 4, 5)
    most = distinct_tiles(256)
    tiles = {tile_of(bucket_of(rows, 256), 4096) for rows in range(1, 257)}
    assert {tile_of(rows, 4096) for rows in most} == tiles


def test_tiles_are_larger_for_more_rows() -> None:
    assert [(tile.cols, tile.threads) for tile in (tile_of(rows, 4096) for rows in (1, 2, 3, 8, 9, 256))] == [
        (1, 64), (2, 64), (4, 64), (8, 64), (8, 256), (8, 256),
    ]  # fmt: skip
    assert tile_of(256, 100).threads == 64
