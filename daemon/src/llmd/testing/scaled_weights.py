"""Random weights in scaled formats, with all their codes, of plausible sizes."""

from __future__ import annotations

import numpy as np

from llmd.api import SCALED_GROUPS, Format, GroupScales, WeightData
from llmd.models.formats.fp8 import E4M3_NUMBERS


def random_floats(
    name: Format, shape: tuple[int, ...], spread: float, draw: np.random.Generator
) -> WeightData:
    """Return a weight ``[out, in]`` in a scaled format, most of it within ``spread``."""
    rows, row_len = shape
    magnitudes = draw.integers(0, 127, (rows, row_len), dtype=np.uint8)  # without NaN
    codes = magnitudes | draw.integers(0, 2, (rows, row_len), dtype=np.uint8) << np.uint8(7)
    typical = spread / float(np.nanstd(E4M3_NUMBERS))
    size = SCALED_GROUPS[name]
    factors = draw.uniform(0.5, 1.5, (rows, -(-row_len // size)))
    scales = GroupScales((typical * factors).astype(np.float32))
    return WeightData(name, codes, scales, group_size=size)
