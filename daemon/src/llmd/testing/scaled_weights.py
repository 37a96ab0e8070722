"""Random weights in scaled formats, with all their codes, of plausible sizes."""

from __future__ import annotations

import numpy as np

from llmd.api import SCALED_GROUPS, Format, GroupScales, WeightData
from llmd.models.formats.fp8 import E4M3_NUMBERS

_SMALL = 8
"""Codes below this one are subnormal numbers, or 0."""
_SMALL_SHARE = 0.25


def random_floats(
    name: Format, shape: tuple[int, ...], spread: float, draw: np.random.Generator
) -> WeightData:
    """Return a weight ``[out, in]`` in a scaled format, most of it within ``spread``.

    Some groups have only subnormal numbers, and scales that make these as large as others: a device that
    takes them for 0 or for normal numbers has wrong results.
    """
    rows, row_len = shape
    size = SCALED_GROUPS[name]
    groups = rows, -(-row_len // size)
    are_small = draw.random(groups) < _SMALL_SHARE
    ends = np.repeat(np.where(are_small, _SMALL, 127), size, axis=1)[:, :row_len]  # 127 is not a number
    magnitudes = draw.integers(0, ends, dtype=np.uint8)
    codes = magnitudes | draw.integers(0, 2, shape, dtype=np.uint8) << np.uint8(7)
    typical = np.where(are_small, _spread_of(_SMALL), _spread_of(127))
    scales = spread / typical * draw.uniform(0.5, 1.5, groups)
    return WeightData(name, codes, GroupScales(scales.astype(np.float32)), group_size=size)


def _spread_of(end: int) -> float:
    """Return the standard deviation of the numbers of the codes below ``end``, with both signs."""
    return float(np.sqrt(np.mean(E4M3_NUMBERS[:end] ** 2)))
