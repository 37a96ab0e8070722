"""The q8 format: bytes around 128 in groups along a row, each group with a float16 scale. See docs/formats.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.tensors import Format, GroupScales, WeightData
from llmd.models.plain_formats import Float32, row_chunks, to_float32

QUANT_FORMATS: tuple[Format, ...] = ("q8",)
LARGEST = 127
ZERO = 128


class _Bits:
    """A plain format's bits as integers: without the sign they order as the values do, NaN above infinity."""

    def __init__(self, dtype: str, infinity: int) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.infinity = infinity
        self.magnitude = (1 << (8 * self.dtype.itemsize - 1)) - 1


BITS: Mapping[Format, _Bits] = {
    "f32": _Bits("<u4", 0x7F80_0000),
    "f16": _Bits("<u2", 0x7C00),
    "bf16": _Bits("<u2", 0x7F80),
}


def quantize_q8(data: NDArray[np.generic], source: Format = "f32") -> WeightData:
    """Quantise a plain weight ``[out, in]`` to q8.

    Each element is off by at most half of its group's scale, apart from float32 rounding.

    Raises:
        ArithmeticError: a value is infinite or NaN, or too large for a float16 scale.
    """
    num_rows, row_len = data.shape
    size = INTEGER_FORMATS["q8"].row_group_size(row_len)
    quantized = np.empty((num_rows, row_len), np.uint8)
    scales = np.empty((num_rows, -(-row_len // size)), np.float16)
    for rows in row_chunks(data):
        groups = _grouped(data[rows], size)
        group_scales = _scales(groups, source)
        chunk_shape = scales[rows].shape
        scales[rows] = group_scales.reshape(chunk_shape)
        padded = _quantize_groups(groups, group_scales, source).reshape(chunk_shape[0], chunk_shape[1] * size)
        quantized[rows] = padded[:, :row_len]
    return WeightData("q8", quantized, GroupScales(scales), group_size=size)


def dequantize_q8(weight: WeightData) -> Float32:
    """The float32 weight ``[out, in]`` that a q8 weight stands for."""
    assert weight.scales is not None
    row_len = weight.data.shape[1]
    scales = np.repeat(weight.scales.values(), weight.group_size, axis=1)[:, :row_len]
    return weight.integers().astype(np.float32) * scales


def _grouped(chunk: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    """``[groups, size]``; a short last group is filled up with zeros, which change no maximum."""
    missing = -chunk.shape[1] % size
    if missing:
        chunk = np.pad(chunk, ((0, 0), (0, missing)))
    return chunk.reshape(-1, size)


def _scales(groups: NDArray[np.generic], source: Format) -> NDArray[np.float16]:
    bits = BITS[source]
    largest_bits = (groups.view(bits.dtype) & bits.dtype.type(bits.magnitude)).max(axis=1)
    if largest_bits.size and largest_bits.max() >= bits.infinity:
        raise ArithmeticError("a value is infinite or not a number")
    largest = to_float32(largest_bits.view(groups.dtype), source)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        scales = (largest / np.float32(LARGEST)).astype(np.float16)
        # Only a subnormal scale can be rounded down so far that the largest element would not fit.
        does_not_fit = largest / scales.astype(np.float32) >= LARGEST + 0.5
        scales[does_not_fit] = np.nextafter(scales[does_not_fit], np.float16(np.inf))
    if np.isinf(scales).any():
        raise ArithmeticError(f"the value {largest.max()} is too large for q8")
    return scales


def _quantize_groups(
    groups: NDArray[np.generic], scales: NDArray[np.float16], source: Format
) -> NDArray[np.uint8]:
    divisors = np.where(scales == 0, np.float32(1), scales.astype(np.float32))
    scaled = to_float32(groups, source) / divisors[:, None]
    return (np.rint(scaled, out=scaled) + np.float32(ZERO)).astype(np.uint8)
