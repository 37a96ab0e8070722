"""Weights in FP8 and NVFP4: numbers are decoded exactly, scales of any size count, planted bugs are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api import SCALED_FORMATS, DeviceError, Format, GroupScales, TensorRef, Weight, WeightData
from llmd.api.step import Float32
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.fp8 import from_e4m3
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.matrices import load_matrix, relative_scales
from llmd_backend_cuda.matrix_forms import MatrixForm, MatrixSize
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard
from tests.cuda.test_planted_bugs import MutatedCard, are_wrong
from tests.plugins.backend_cuda.ops.test_linear import Bench
from tests.plugins.backend_cuda.test_expert_cache import Bench as Cached

pytestmark = NEEDS_COMPILER

OUT, WIDTH = 40, 300
KERNELS = {"few": (8, 4), "many": (100, 1), "slices": (100, 4)}
"""Rows of a product, and processors of a card that then uses `gemv`, `gemm`, or `gemm` and `add_slices`."""


def random_weight(name: Format) -> WeightData:
    return RandomSource().read(Weight(TensorRef("w", (OUT, WIDTH)), name))


def weights_on(data: WeightData, kernel: str = "few", card: SimulatedCard | None = None) -> Float32:
    """Return a weight as products have it: those of rows with one element."""
    rows, processors = KERNELS[kernel]
    bench = Bench(WIDTH, ("f16", OUT), card=card or SimulatedCard())
    bench.card.num_processors = processors
    bench.loaded[0] = load_matrix(bench.card, data)
    found = []
    for first in range(0, WIDTH, rows):
        bench.card.upload(bench.slots[0], 0, np.eye(rows, WIDTH, first, dtype=np.float32))
        bench.run(bench.product(), rows)
        found.append(bench.read(2, rows))
    return np.concatenate(found)[:WIDTH].T


def rounded(data: WeightData) -> Float32:
    """Return a weight as it is to be: numbers times relative scales in float16, times the scales of rows."""
    size = MatrixSize(MatrixForm.of(data.format, WIDTH), OUT, WIDTH)
    of_rows, of_groups = relative_scales(data, size)
    scales = np.repeat(of_groups.coarse.astype(np.float16), size.form.group, axis=1)[:, :WIDTH]
    numbers = (from_e4m3(data.data.view(np.uint8)) / 256).astype(np.float16)
    return (numbers * scales).astype(np.float32) * of_rows[:OUT, None]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SCALED_FORMATS)
def test_weights_are_rounded_as_described(name: Format, kernel: str) -> None:
    data = random_weight(name)
    assert np.unique(data.data).size == 254, "all finite numbers"
    np.testing.assert_array_equal(weights_on(data, kernel), rounded(data))


def test_a_row_with_one_scale_is_exact() -> None:
    scales = np.random.default_rng(1).uniform(1e-4, 1e-3, (OUT, 1)).astype(np.float32)
    data = WeightData("fp8", random_weight("fp8").data, GroupScales(scales), group_size=WIDTH)
    np.testing.assert_array_equal(weights_on(data), dequantize(data))


def test_scales_of_any_size_count() -> None:
    """Rows from 1e-34 to 1e34, whose groups differ by up to 2^20, with either sign; one row is zero."""
    data, draw = random_weight("fp8"), np.random.default_rng(2)
    assert data.scales is not None
    shape = data.scales.coarse.shape
    sizes = 10.0 ** np.linspace(-34, 34, OUT)[:, None] * 2.0 ** draw.uniform(-20, 0, shape)
    sizes[7] = 0
    scales = GroupScales((sizes * draw.choice([-1, 1], shape)).astype(np.float32))
    data = WeightData("fp8", data.data, scales, group_size=128)
    found, exact = weights_on(data), dequantize(data)
    largest = np.abs(scales.coarse).max(axis=1, keepdims=True)
    assert (np.abs(found - exact) <= 1.001 * 2.0**-10 * np.abs(exact) + 2.0**-30 * largest).all()


BUGS = {
    "numbers without a sign": ("few", "weights.cuh", "(bytes & 0x80008000u) | ", ""),
    "numbers of another pair": ("few", "weights.cuh", "0x1404 : 0x3424", "0x1404 : 0x1404"),
    "exponents that lack a bit": ("few", "weights.cuh", "0x3f803f80u", "0x1f801f80u"),
    "the scale of another row": ("few", "scales.cuh", "places.of_rows[row]", "places.of_rows[0]"),
    "few rows without a scale": ("few", "gemv.cu", "totals[s] *= scales[s];", ""),
    "many rows without a scale": ("many", "gemm.cu", "* scale,", ","),
    "slices without a scale": ("slices", "gemm.cu", "total *= scale_of_row", "scale_of_row"),
}
"""Kernel, file, old text and new one."""


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_numbers(tmp_path: Path, bug: str) -> None:
    kernel, *change = BUGS[bug]
    data, card = random_weight("fp8"), MutatedCard(tmp_path / "kernels", *change)
    assert not np.array_equal(weights_on(data, kernel, card), rounded(data))


@pytest.mark.exhaustive
def test_scales_of_rows_in_another_block(tmp_path: Path) -> None:
    right = Cached(0.3, fmt="fp8").answers()
    bug = "arrays.of_rows + block / sizeof(float)", "arrays.of_rows"
    try:
        found = Cached(0.3, MutatedCard(tmp_path / "kernels", "scales.cuh", *bug), fmt="fp8").answers()
    except DeviceError:
        return
    assert are_wrong(found, right)
