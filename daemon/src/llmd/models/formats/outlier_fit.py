"""Fit 8-bit groups with a few outliers that exceed the range of a code. docs/formats.md defines the steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import OUTLIER_STEP
from llmd.api.tensors import Outliers
from llmd.models.formats.float16 import float16_from
from llmd.models.plain_formats import Float32

_MOST = 127
_FARTHEST = _MOST * (1 + OUTLIER_STEP)


def least_units(magnitudes: Float32, num_outliers: int) -> NDArray[np.float16]:
    """Return the least float16 scales for magnitudes ``[group_size, groups]``.

    All but ``num_outliers`` weights of a group fit the range of a code, and the rest fit the range of an
    outlier.

    Raises:
        ArithmeticError: a scale is outside the range of float16.
    """
    count = min(num_outliers + 1, len(magnitudes))
    largest = np.partition(magnitudes, -count, axis=0)[-count:]
    within = largest[0] if count > num_outliers else np.zeros_like(largest[0])
    return float16_from(np.maximum(largest.max(axis=0) / np.float32(_FARTHEST), within / np.float32(_MOST)))


def take_outliers(integers: Float32, num_outliers: int) -> Outliers:
    """Return the outliers of ``[group_size, groups]``; reduce them by whole steps to -127 .. 127."""
    num_groups = integers.shape[1]
    columns = np.zeros((num_groups, num_outliers), np.uint8)
    residuals = np.zeros((num_groups, num_outliers), np.int8)
    group, column = np.nonzero(np.abs(integers.T) > _MOST)
    beyond = integers[column, group]
    steps = np.sign(beyond) * np.ceil((np.abs(beyond) - _MOST) / OUTLIER_STEP)
    integers[column, group] -= OUTLIER_STEP * steps
    place = np.arange(len(group)) - np.searchsorted(group, group)  # in the group
    columns[group, place] = column
    residuals[group, place] = steps
    return Outliers(columns, residuals)
