from __future__ import annotations

import numpy as np
import pytest

from llmd.models.formats.fp8 import check_numbers, from_e4m3, from_e8m0
from tests.golden.fp8 import MAGNITUDES


def test_numbers_have_four_bits_of_exponent_and_three_of_fraction() -> None:
    numbers = from_e4m3(np.arange(256, dtype=np.uint8))
    assert numbers[:127].tolist() == MAGNITUDES.tolist()
    assert numbers[128:255].tolist() == (-MAGNITUDES).tolist()
    assert np.signbit(numbers[128])
    assert (numbers[1], numbers[8], numbers[0x38], numbers[0x7E]) == (2.0**-9, 2.0**-6, 1.0, 448.0)


def test_all_ones_are_no_number_and_nothing_is_infinite() -> None:
    numbers = from_e4m3(np.arange(256, dtype=np.uint8))
    assert np.flatnonzero(~np.isfinite(numbers)).tolist() == [0x7F, 0xFF]


@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_codes_that_are_no_numbers_are_found(code: int) -> None:
    codes = np.full((40, 5000), 0x7E, np.uint8)
    check_numbers(codes | np.uint8(0x80))
    codes[39, 4999] = code
    with pytest.raises(ArithmeticError, match="an element is not a number"):
        check_numbers(codes)


def test_exponents_are_powers_of_two() -> None:
    powers = from_e8m0(np.array([0, 126, 127, 130, 254, 255], np.uint8))
    assert powers[:5].tolist() == [2.0**-127, 0.5, 1.0, 8.0, 2.0**127]
    assert np.isnan(powers[5])
