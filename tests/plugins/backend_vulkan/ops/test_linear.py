"""Products with matrices in formats of each way to store codes and scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from llmd.api import DeviceOptions, Format, GroupScales, TensorRef, Weight, WeightData
from llmd.models.formats.dequantization import dequantize
from llmd.testing.conformance import cases_for
from llmd.testing.runs import LoadedWorkload
from llmd.testing.sources import RandomSource
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan.commands import MOST_WORK
from llmd_backend_vulkan.context import NONE, stride_of
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.matrices import load_matrix, load_stack
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.ops import linear as linear_ops
from llmd_backend_vulkan.ops.linear import (
    Residual,
    Target,
    cut_by_work,
    first_rows,
    products,
    tile_of,
)
from llmd_backend_vulkan.tiles import LARGE_TILES, Tile, default_tile
from llmd_backend_vulkan.vulkan import PhysicalDevice
from llmd_backend_vulkan.weights import VulkanWeights

NAMES = (
    "linear/f32-rows",
    "linear/f16-320",
    "linear/bf16",
    "linear/q8_row-activations-f32",
    "linear/q4-activations-f32",
    "linear/q3_g32-narrow-activations-f32",
    "linear/q6_k-activations-f32",
    "linear/mxfp4-activations-f32",
    "linear/fp8",
    "head/scale-softcap-bias",
)


SLOW = (
    "linear/nvfp4",
    "linear/q8_wide-activations-f32",
    "linear/q2_g64_sym-activations-f32",
    "linear/q5_1-activations-f32",
    "linear/iq4_xs-activations-f32",
)


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SLOW)]
)
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
        monkeypatch.setattr(linear_ops, "MOST_WORK", most)
        with LoadedWorkload(VulkanDevice(physical, DeviceOptions()), case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])


class Product:
    """Rows of x in memory of the device, and a matrix to multiply them by."""

    def __init__(self, arena: Arena, name: Format, rows: int, height: int, width: int) -> None:
        self._arena = arena
        self._rows, self._height, self._stride = rows, height, stride_of(width)
        ref = TensorRef("m", (height, width))
        self._matrix = load_matrix(arena, RandomSource().read(Weight(ref, name)))
        random = np.random.default_rng(7)
        self._index = random.permutation(rows).astype(np.uint32)
        self._bias = arena.take(height)
        arena.upload(self._bias, 0, random.standard_normal(height, np.float32))
        self._places = {"count": 0, "index": 64, "x": 64 + stride_of(rows)}
        self._places["residual"] = self._places["x"] + rows * self._stride
        self._places["out"] = self._places["residual"] + rows * height
        self._work = arena.take(self._places["out"] + rows * height)
        x = np.zeros((rows, self._stride), np.float32)
        x[:, :width] = random.standard_normal((rows, width), np.float32)
        for place, values in (
            ("count", np.array([rows - 1], np.uint32)),
            ("index", self._index),
            ("x", x),
            ("residual", random.standard_normal((rows, height), np.float32)),
            ("out", np.full(rows * height, np.nan, np.float32)),
        ):
            arena.upload(self._work, self._places[place], values)

    def by(self, tile: Tile, *, has_extras: bool) -> NDArray[np.uint32]:
        """Return the result by a tile for all rows but the last; ``has_extras``: with all options."""
        at = {name: self._work.at + place for name, place in self._places.items()}
        target = Target(at["x"], self._stride, at["out"], self._height, at["count"])
        bias = (self._work.buffer, NONE)
        if has_extras:
            residual = Residual(at["residual"], self._height, 0.5)
            target = structs.replace(target, index=at["index"], scale=0.3, softcap=9.0, residual=residual)
            bias = (self._bias.buffer, self._bias.at)
        phase = list(products(self._work.buffer, self._matrix, bias, target, tile, self._rows))
        self._arena.runtime.run([phase])
        out = self._arena.download(self._work, self._places["out"], self._rows * self._height)
        return out.reshape(self._rows, self._height)


FEW = Tile(4, 8, 64)


def check_tiles(product: Product, tiles: Sequence[Tile], *, has_extras: bool = False) -> None:
    """Compare the bits of tiles with those of the shader for few rows."""
    expected = product.by(FEW, has_extras=has_extras)
    assert np.isfinite(expected[:-1].view(np.float32)).all()
    assert np.isnan(expected[-1].view(np.float32)).all()
    for tile in tiles:
        found = product.by(tile, has_extras=has_extras)
        assert np.array_equal(found, expected), tile


@pytest.mark.parametrize("name", ["f16", "q4", "q8_wide"])
def test_all_tiles_give_the_same_bits(arena: Arena, name: Format) -> None:
    check_tiles(Product(arena, name, 70, 75, 330), LARGE_TILES)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *((name, 300) for name in ("f32", "bf16", "q8_row", "q2_g64_sym", "q3_g32", "nvfp4")),
        *((name, 288) for name in ("q5_1", "mxfp4")),
        *((name, 512) for name in ("q4_k", "q6_k", "iq4_xs")),
    ],
)
def test_a_tile_has_the_same_bits_in_each_way_to_store_weights(
    arena: Arena, name: Format, width: int
) -> None:
    check_tiles(Product(arena, name, 35, 70, width), LARGE_TILES[:1])


@pytest.mark.parametrize("tile", [FEW, LARGE_TILES[0]], ids=["few rows", "many rows"])
@pytest.mark.parametrize(("name", "group_size"), [("fp8", 128), ("fp8", 261), ("nvfp4", 16)])
def test_the_identity_reads_each_number_of_8_bits_exactly(
    arena: Arena, name: Format, group_size: int, tile: Tile
) -> None:
    numbers = np.array([code for code in range(256) if code & 127 != 127], np.uint8)
    codes = np.resize(numbers, (3, 261))
    scales = np.random.default_rng(1).uniform(0.5, 2.0, (3, -(-261 // group_size))).astype(np.float32)
    data = WeightData(name, codes, GroupScales(scales), group_size=group_size)
    assert np.array_equal(times_identity(arena, data, tile), dequantize(data).T)


def times_identity(arena: Arena, data: WeightData, tile: Tile) -> NDArray[np.float32]:
    """Return the product of a weight with rows that have a 1 each."""
    height, width = data.data.shape
    stride = stride_of(width)
    x = np.eye(width, stride, dtype=np.float32)
    work = arena.take(64 + x.size + width * height)
    arena.upload(work, 0, np.array([width], np.uint32))
    arena.upload(work, 64, x)
    target = Target(work.at + 64, stride, work.at + 64 + x.size, height, work.at)
    phase = list(products(work.buffer, load_matrix(arena, data), (work.buffer, NONE), target, tile, width))
    arena.runtime.run([phase])
    return arena.download(work, 64 + x.size, width * height).view(np.float32).reshape(width, height)


@pytest.mark.parametrize("width", [3, 260, 2300])
def test_a_tile_has_the_same_bits_at_any_width(arena: Arena, width: int) -> None:
    check_tiles(Product(arena, "q8_row", 9, 5, width), LARGE_TILES[:1])


def test_a_tile_adds_what_follows_a_product(arena: Arena) -> None:
    check_tiles(Product(arena, "f16", 40, 65, 100), LARGE_TILES[:1], has_extras=True)


def test_a_measured_tile_serves_other_numbers_of_rows(arena: Arena) -> None:
    ref = TensorRef("m", (75, 64))
    matrix = load_matrix(arena, RandomSource().read(Weight(ref, "f16")))
    assert tile_of(matrix, 2) == default_tile(2, 75)
    chosen = {1: Tile(2, 1, 256), 8: Tile(4, 8, 256), 256: LARGE_TILES[3]}
    tuned = structs.replace(matrix, tiles=chosen)
    assert [tile_of(tuned, rows) for rows in (1, 2, 4, 16)] == [
        Tile(2, 1, 256), Tile(2, 2, 256), Tile(4, 4, 256), Tile(4, 8, 256),
    ]  # fmt: skip
    assert [tile_of(tuned, rows) for rows in (32, 33)] == [LARGE_TILES[0], LARGE_TILES[3]]


def test_the_first_rows_of_a_matrix_are_a_matrix(arena: Arena) -> None:
    matrix = load_matrix(arena, RandomSource().read(Weight(TensorRef("m", (75, 64)), "f16")))
    part = first_rows(matrix, 20)
    assert (part.height, part.pieces[0].num_rows) == (20, 20)
    assert first_rows(matrix, 100).height == 75


def test_the_first_rows_of_a_stack_are_those_of_its_first_member(arena: Arena) -> None:
    ref = TensorRef("m", (3, 20, 64), is_stack=True)
    members = [RandomSource().read(Weight(ref.member(number), "q8")) for number in range(3)]
    stack, first = load_stack(arena, 3, members.__getitem__), load_matrix(arena, members[0])
    work, rows = arena.take(64 + 2 * (64 + 12)), np.arange(2 * 64, dtype=np.float32)
    arena.upload(work, 0, np.array([2], np.uint32))
    arena.upload(work, 64, rows)
    target = Target(work.at + 64, 64, work.at + 64 + 2 * 64, 12, work.at)
    results = []
    for matrix in (stack, first):
        part = first_rows(matrix, 12)
        assert part.height == 12
        arena.runtime.run([list(products(work.buffer, part, (work.buffer, NONE), target, Tile(4, 2, 64), 2))])
        results.append(arena.download(work, 64 + 2 * 64, 2 * 12).view(np.float32))
    assert results[0].any()
    assert np.array_equal(results[0], results[1])
