from __future__ import annotations

import numpy as np
import pytest

from llmd.models.formats.float16 import check_weights, to_float16, units_of


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad: float) -> None:
    check_weights(np.zeros((0, 3), np.float32))
    with pytest.raises(ArithmeticError, match="infinite or not a number"):
        check_weights(np.array([[1, bad]], np.float32))


@pytest.mark.parametrize("large", [1e7, -1e7])
def test_weights_that_no_scale_reaches_are_refused(large: float) -> None:
    check_weights(np.array([[65504 * 127]], np.float32))
    with pytest.raises(ArithmeticError, match=r"the value 1e\+07 is too large"):
        check_weights(np.array([[1, large]], np.float32))


def test_scales_are_rounded_to_nearest_even_within_their_range() -> None:
    assert to_float16(np.array([2049, 2051, -0.1], np.float32)).tolist() == [
        2048,
        2052,
        float(np.float16(-0.1)),
    ]
    with pytest.raises(ArithmeticError, match="a scale of 70000 is too large"):
        to_float16(np.array([1, -70000], np.float32))


def test_units_let_the_largest_number_fit() -> None:
    largest = np.array([0, 63, 0.02, 3e-6, 1e-9, 1.4 * 63 * 2**-24], np.float32)
    units = units_of(largest, 63).astype(np.float64)
    assert units[:2].tolist() == [0, 1]
    assert (np.rint(largest[1:] / units[1:]) <= 63).all()
    assert units[-1] == 2 * 2.0**-24
