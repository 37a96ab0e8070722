"""Native quantisation gives the same bits as NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, Format, WeightData
from llmd.api.messages import Load
from llmd.api.quantizer import Quantizes
from llmd.api.step import Float32
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import load_model
from llmd.models.formats.quantization import QUANTIZER_ELEMENTS, quantize
from llmd.models.plain_formats import from_float32
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.quantizer import NativeQuantizer
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model


class Willing(NativeQuantizer):
    """Fails if NumPy has to take over."""

    def quantize(self, weights: NDArray[np.generic], source: Format, into: WeightData) -> bool:
        assert super().quantize(weights, source, into)
        return True


def hard_rows(row_len: int) -> Float32:
    """Return rows with heavy tails, zeros, the limits of float16, or an early end of the search."""
    rows = np.random.default_rng(5).standard_t(3, (43, row_len)).astype(np.float32)
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
    rows[11] = -0.37
    rows[12, : row_len // 2] = 0
    rows[13] = np.where(np.arange(row_len) % 7 == 3, rows[13] * 50, rows[13])
    rows[14:22] *= np.float32(10.0) ** -np.arange(1, 9, dtype=np.float32)[:, None]
    rows[22] = np.clip(rows[22] * 1e6, -60000, 60000)
    rows[23] = np.rint(rows[23] * 4)
    rows[24, 1:] = 0
    rows[25] += 100
    rows[26] *= 3e-6
    return rows


def bits(weight: WeightData) -> list[bytes]:
    return [array.tobytes() for array in weight.arrays]


def names_with(row_len: int) -> list[Format]:
    return [name for name in OWN_FORMATS if row_len % (INTEGER_FORMATS[name].coarse_size or 1) == 0]


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("row_len", "name"), [(n, name) for n in (1, 7, 40, 256, 700, 1000, 1024) for name in names_with(n)]
)
def test_every_format_has_the_bits_that_numpy_gives(name: Format, row_len: int, source: Format) -> None:
    rows = hard_rows(row_len)
    if source == "f16":
        rows = np.clip(rows, -60000, 60000)
    data = from_float32(rows, source)
    assert bits(quantize(data, name, source, Willing())) == bits(quantize(data, name, source))


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_weights_that_a_file_leaves_unaligned_are_the_same(name: Format) -> None:
    rows = hard_rows(256)
    unaligned = np.frombuffer(b"x" + rows.tobytes(), np.float32, rows.size, 1).reshape(rows.shape)
    assert bits(quantize(unaligned, name, quantizer=Willing())) == bits(quantize(rows, name))


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_no_rows_become_none(name: Format) -> None:
    assert quantize(hard_rows(256)[:0], name, quantizer=Willing()).data.shape == (0, 256)


def test_many_rows_are_quantised_a_piece_at_a_time() -> None:
    rows = np.random.default_rng(7).standard_normal((3 * QUANTIZER_ELEMENTS // 512, 512)).astype(np.float32)
    assert bits(quantize(rows, "q4", quantizer=Willing())) == bits(quantize(rows, "q4"))


@pytest.mark.parametrize("name", OWN_FORMATS)
def test_rows_that_lie_apart_are_left_to_numpy(name: Format) -> None:
    rows = hard_rows(512)[:, :256]
    assert bits(quantize(rows, name, quantizer=NativeQuantizer())) == bits(quantize(rows, name))


@pytest.mark.parametrize("name", OWN_FORMATS)
@pytest.mark.parametrize("place", [0, 255, 256 + 40, 2 * 256 + 255])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2.0**23 + 1, -1e30])
def test_what_no_format_has_is_the_error_that_numpy_gives(name: Format, place: int, value: float) -> None:
    rows = np.random.default_rng(6).standard_normal((3, 256)).astype(np.float32)
    rows.reshape(-1)[place] = value
    with pytest.raises(ArithmeticError) as expected:
        quantize(rows, name)
    with pytest.raises(ArithmeticError) as raised:
        quantize(rows, name, quantizer=NativeQuantizer())
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("scale", [3e4, 1e5, 3e5, 1e6, 3e6])
@pytest.mark.parametrize("name", OWN_FORMATS)
def test_scales_end_where_those_of_numpy_do(name: Format, scale: float) -> None:
    for seed in range(8):
        rows = (np.random.default_rng(seed).uniform(-1, 1, (2, 256)) * scale).astype(np.float32)
        assert outcome(rows, name, NativeQuantizer()) == outcome(rows, name, None)


def outcome(rows: Float32, name: Format, quantizer: NativeQuantizer | None) -> list[bytes] | str:
    try:
        return bits(quantize(rows, name, quantizer=quantizer))
    except ArithmeticError as error:
        return str(error)


@pytest.mark.parametrize("name", ["q4", "q2", "q4_g32", "q4_g32_sym", "q8", "q8_wide"])
def test_arrays_of_another_shape_are_refused(name: Format) -> None:
    rows = hard_rows(256)
    with pytest.raises(ValueError, match="one code per weight"):
        NativeQuantizer().quantize(rows, "f32", quantize(rows[1:], name))
    with pytest.raises(ValueError, match="f32, f16 or bf16"):
        NativeQuantizer().quantize(rows, "f64", quantize(rows, name))


def test_a_model_is_quantised_by_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice()
    assert isinstance(device, Quantizes)
    quantized: list[int] = []
    native = NativeQuantizer.quantize

    def noting(
        quantizer: NativeQuantizer, weights: NDArray[np.generic], source: Format, into: WeightData
    ) -> bool:
        quantized.append(weights.size)
        return native(quantizer, weights, source, into)

    monkeypatch.setattr(NativeQuantizer, "quantize", noting)
    architectures = {name: one for one in llmd_architectures() for name in one.names}
    directory = write_checkpoint(tiny_model("tinyllama"), tmp_path / "model")
    message = Load(str(directory), slots=1, quant="q4")
    load_model(message, architectures, lambda _: device, lambda _: None).close()
    assert quantized
