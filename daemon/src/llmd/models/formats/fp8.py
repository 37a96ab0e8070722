"""Numbers of 8 bits as weights store them: a sign, 4 bits of exponent, 3 of fraction (e4m3fn).

Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning" (arXiv:2209.05433). There are no infinities:
0x7f and 0xff are not numbers, and the largest number is 448.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.models.formats.row_chunks import for_row_chunks

Bytes = NDArray[np.uint8]
Float32 = NDArray[np.float32]

NO_EXPONENT = 255
"""The only code of e8m0 that is not a number."""

_FRACTIONS = 8
_BIAS = 7


def _all_numbers() -> Float32:
    """Return the number of each byte, float32 ``[256]``."""
    exponents, fractions = np.divmod(np.arange(128), _FRACTIONS)
    normal = np.ldexp(1 + fractions / _FRACTIONS, exponents - _BIAS)
    positive = np.where(exponents == 0, np.ldexp(fractions / _FRACTIONS, 1 - _BIAS), normal)
    positive[-1] = np.nan
    return np.concatenate([positive, -positive]).astype(np.float32)


E4M3_NUMBERS = _all_numbers()
E4M3_NUMBERS.flags.writeable = False


def from_e4m3(codes: Bytes) -> Float32:
    """Return the numbers of codes: exact."""
    return E4M3_NUMBERS[codes]


def from_e8m0(exponents: Bytes) -> Float32:
    """Return powers of two, ``2 ** (e - 127)``: exact; `NO_EXPONENT` is not a number."""
    powers = np.ldexp(np.float32(1), np.minimum(exponents, NO_EXPONENT - 1).astype(np.int32) - 127)
    return np.where(exponents == NO_EXPONENT, np.float32(np.nan), powers)


def check_numbers(codes: Bytes) -> None:
    """Check codes ``[rows, row length]``.

    Raises:
        ArithmeticError: one is not a number.
    """

    def of_rows(rows: slice) -> None:
        if ((codes[rows] | 0x80) == 0xFF).any():
            raise ArithmeticError("an element is not a number")

    num_rows, row_len = codes.shape
    for_row_chunks(num_rows, row_len, of_rows)
