"""Round scales to float16, and refuse weights that are too large or not finite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.models.plain_formats import Float32

LARGEST_WEIGHT = 2.0**23
"""No format of up to eight bits with float16 scales can represent larger weights."""


def check_weights(weights: Float32) -> None:
    """Check that a format could represent these weights. Smaller excesses are found when scales are rounded.

    Raises:
        ArithmeticError: a weight is infinite, not a number, or too large for every format.
    """
    largest = max(float(np.max(weights, initial=0)), -float(np.min(weights, initial=0)))
    if not np.isfinite(largest):
        raise ArithmeticError("a value is infinite or not a number")
    if largest > LARGEST_WEIGHT:
        raise ArithmeticError(f"the value {largest:g} is too large")


def to_float16(scales: Float32) -> NDArray[np.float16]:
    """Round to nearest even.

    Raises:
        ArithmeticError: a number is outside the range of float16.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = scales.astype(np.float16)
    if np.isinf(rounded).any():
        raise ArithmeticError(f"a scale of {np.abs(scales).max():g} is too large")
    return rounded


def float16_from(numbers: Float32) -> NDArray[np.float16]:
    """Round non-negative numbers up to float16.

    Raises:
        ArithmeticError: a number is outside the range of float16.
    """
    rounded = to_float16(numbers)
    below = rounded.astype(np.float32) < numbers
    rounded[below] = np.nextafter(rounded[below], np.float16(np.inf))
    return to_float16(rounded.astype(np.float32))


def units_of(largest: Float32, most: int) -> NDArray[np.float16]:
    """Return, for non-negative numbers, float16 ``u`` such that ``largest / u`` rounds to at most ``most``.

    ``u`` is ``largest / most`` rounded to nearest even. Only subnormals can be rounded down so far that the
    next larger number is needed.

    Raises:
        ArithmeticError: a unit is outside the range of float16.
    """
    units = to_float16(largest / np.float32(most))
    too_small = largest >= units.astype(np.float32) * np.float32(most + 0.5)
    too_small &= largest > 0
    units[too_small] = np.nextafter(units[too_small], np.float16(np.inf))
    return units
