"""Rounding of the rows that are multiplied by weights, keys and values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.program import Precision
from llmd.models.plain_formats import from_float32, to_float32


def round_to(precision: Precision, x: NDArray[np.floating]) -> NDArray[np.float64]:
    """Round to nearest even, beyond the largest value to infinity; ``f32`` returns the values unrounded."""
    if precision == "f32":
        return x.astype(np.float64)
    return to_float32(from_float32(x.astype(np.float32), precision), precision).astype(np.float64)
