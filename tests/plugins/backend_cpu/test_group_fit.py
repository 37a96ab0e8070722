"""The native search gives what NumPy gives, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, WeightData
from llmd.api.group_fit import FitsGroups
from llmd.api.messages import Load
from llmd.api.step import Float32
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import load_model
from llmd.models.formats.quantization import quantize
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.group_fit import NativeFitter
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model


def hard_rows(row_len: int) -> Float32:
    """Rows of heavy tails, and those whose search ends early or meets zeros."""
    rows = np.random.default_rng(5).standard_t(3, (16, row_len)).astype(np.float32)
    rows[0] = 0
    rows[1] = -0.0
    rows[2] = np.abs(rows[2])
    rows[3] = -np.abs(rows[3])
    rows[4] = 1
    rows[5, ::3] = 0
    rows[6] = np.where(rows[6] > 0, rows[6], -0.0)
    rows[7] *= 1e-30
    rows[8] *= 1e-38
    rows[9] *= 1e3
    rows[10] = 1e-45
    return rows


def bits(weight: WeightData) -> list[bytes]:
    return [array.tobytes() for array in weight.arrays]


@pytest.mark.parametrize("row_len", [256, 1000, 1024])
@pytest.mark.parametrize("fmt", OWN_FORMATS)
def test_every_format_has_the_bits_that_numpy_gives(fmt: str, row_len: int) -> None:
    if row_len % (INTEGER_FORMATS[fmt].coarse_size or 1):
        row_len = 768
    rows = hard_rows(row_len)
    assert bits(quantize(rows, fmt, fitter=NativeFitter())) == bits(quantize(rows, fmt))


def test_results_of_another_shape_are_refused() -> None:
    fitter = NativeFitter()
    with pytest.raises(ValueError, match="groups have weights"):
        fitter.fit_symmetric(np.empty((0, 3), np.float32), 8)
    with pytest.raises(TypeError):
        fitter.fit_affine(np.empty((32, 3), np.float64), 15, minimum_below_zero=True)


def test_a_model_is_quantised_with_the_search_of_its_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = CpuDevice()
    assert isinstance(device, FitsGroups)
    searched: list[int] = []
    search = NativeFitter.fit_affine

    def noting(fitter: NativeFitter, weights: Float32, most: int, *, minimum_below_zero: bool) -> Float32:
        searched.append(weights.size)
        return search(fitter, weights, most, minimum_below_zero=minimum_below_zero)

    monkeypatch.setattr(NativeFitter, "fit_affine", noting)
    architectures = {name: one for one in llmd_architectures() for name in one.names}
    directory = write_checkpoint(tiny_model("tinyllama"), tmp_path / "model")
    message = Load(str(directory), slots=1, quant="q4")
    load_model(message, architectures, lambda _: device, lambda _: None).close()
    assert searched
