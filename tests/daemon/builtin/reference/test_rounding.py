from __future__ import annotations

import numpy as np
import pytest

from llmd.api import Precision
from llmd.builtin.reference.rounding import round_to


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("f32", [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, -1e5]),
        ("f16", [1.0, 1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, -np.inf]),
        ("bf16", [1.0, 1.0, 1.0, 1 + 2**-6, -99840.0]),
    ],
)
def test_rounds_to_nearest_even_and_beyond_the_range_to_infinity(
    precision: Precision, expected: list[float]
) -> None:
    values = np.array([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, -1e5])
    rounded = round_to(precision, values)
    assert rounded.dtype == np.float64
    assert rounded.tolist() == expected
