"""Dequantise weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import SCALED_FORMATS, GroupScales, WeightData
from llmd.models.formats.fp8 import from_e4m3
from llmd.models.formats.row_chunks import for_row_chunks
from llmd.models.plain_formats import Float32


def dequantize(weight: WeightData) -> Float32:
    """Dequantise a weight of an integer or scaled format to float32 ``[out, in]``.

    The result is exact to the last bit for integers; in a scaled format each product is rounded once.

    If scales are not finite or too large, the results are not finite.
    """
    num_rows, row_len = weight.data.shape
    out = np.empty((num_rows, row_len), np.float32)

    def of_rows(rows: slice) -> None:
        part = weight.rows(rows)
        assert part.scales is not None
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(_numbers(part), _by_input(part.scales, weight.group_size, row_len), out=out[rows])
            if part.minimums is not None:
                out[rows] += _by_input(part.minimums, weight.group_size, row_len)

    for_row_chunks(num_rows, row_len, of_rows)
    return out


def _numbers(weight: WeightData) -> NDArray[np.generic]:
    """Return what the scales multiply, ``[out, in]``."""
    if weight.format in SCALED_FORMATS:
        return from_e4m3(weight.data.view(np.uint8))
    return weight.integers()


def _by_input(scales: GroupScales, group_size: int, row_len: int) -> Float32:
    """Return the scale of each input, ``[out, in]``."""
    return np.repeat(scales.values(), group_size, axis=1)[:, :row_len]
