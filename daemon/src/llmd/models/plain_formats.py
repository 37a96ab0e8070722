"""The plain weight formats f32, f16 and bf16, and conversion between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import Format

STORED_DTYPES: Mapping[Format, np.dtype[Any]] = {
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<u2"),  # NumPy has no bf16: these are the upper halves of float32
}
CHUNK_ELEMENTS = 1 << 17
"""Elements converted at a time: their float32 copies fit in the L2 cache."""

_LARGEST: Mapping[Format, float] = {"f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127}

Float32 = NDArray[np.float32]


def to_float32(data: NDArray[np.generic], source: Format) -> Float32:
    """Convert to float32 exactly; return ``data`` itself if it is float32 already."""
    if source == "bf16":
        bits = data.astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32)
    return data.astype(np.float32, copy=False)


def from_float32(values: Float32, target: Format) -> NDArray[np.generic]:
    """Round to the nearest value of ``target``, ties to even; values out of range become infinite."""
    if target == "bf16":
        return _to_bfloat16(values)
    with np.errstate(over="ignore"):
        return values.astype(STORED_DTYPES[target], copy=False)


def _to_bfloat16(values: Float32) -> NDArray[np.uint16]:
    bits = values.view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    # Rounding could carry a NaN's payload into the sign: store a quiet NaN instead.
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def convert(data: NDArray[np.generic], source: Format, target: Format) -> NDArray[np.generic]:
    """Convert between plain formats: exactly to a wider one, otherwise to the nearest value.

    Raises:
        ArithmeticError: a finite value is outside the range of ``target``.
    """
    if source == target:
        return data
    converted = np.empty(data.shape, STORED_DTYPES[target])
    given, taken = data.reshape(-1), converted.reshape(-1)
    for first in range(0, data.size, CHUNK_ELEMENTS):
        chunk = slice(first, first + CHUNK_ELEMENTS)
        values = to_float32(given[chunk], source)
        taken[chunk] = from_float32(values, target)
        if target != "f32" and not _surely_within(values, target):
            _check_range(values, to_float32(taken[chunk], target), target)
    return converted


def _surely_within(values: Float32, target: Format) -> bool:
    """Whether no value can overflow. NaN makes this false.

    Only the largest magnitude is checked, because comparing the stored values takes as long as storing them.
    """
    return max(float(values.max()), -float(values.min())) <= _LARGEST[target]


def _check_range(values: Float32, stored: Float32, target: Format) -> None:
    lost = np.isfinite(values) & ~np.isfinite(stored)
    if lost.any():
        raise ArithmeticError(f"the value {values[lost][0]} is outside the range of {target}")
