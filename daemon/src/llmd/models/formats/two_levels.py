"""Scales and minimums of two levels for groups of weights: where one is rounded, the other makes up for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.models.formats.float16 import units_of
from llmd.models.formats.group_fit import Groups, GroupSums, fit_affine
from llmd.models.plain_formats import Float32


class TwoLevels(msgspec.Struct, frozen=True):
    """Coarse numbers are float16 ``[coarse groups]``, fine ones whole numbers ``[groups]``. Coarse minimums are negative."""

    coarse_scale: NDArray[np.float16]
    fine_scale: Float32
    coarse_minimum: NDArray[np.float16]
    fine_minimum: Float32


def fit_two_levels(groups: Groups, most: int, most_fine: int, per_coarse: int) -> TwoLevels:
    """Fit ``scale * code + minimum`` with codes ``0 .. most``, and leave ``groups`` with the codes that fit.

    Scale and minimum are each a coarse number, which ``per_coarse`` groups share, times a fine one of ``0 .. most_fine``.

    Raises:
        ArithmeticError: a coarse number lies beyond the range of float16.
    """
    fit = fit_affine(groups, most, minimum_below_zero=True)
    scales, minimums = (units_of(_largest(x, per_coarse), most_fine) for x in (fit.scale, -fit.minimum))
    units = _Units(groups, most_fine, _for_groups(scales, per_coarse), _for_groups(minimums, per_coarse))
    fine_scale, fine_minimum = units.best(np.floor(_ratio(fit.scale, units.scale)), (0, 1), fit.sums)
    units.round(fine_scale, fine_minimum, most)
    fine_scale, fine_minimum = units.best(fine_scale, (-1, 0, 1), groups.sums())
    units.round(fine_scale, fine_minimum, most)
    return TwoLevels(scales, fine_scale, -minimums, fine_minimum)


class _Units:
    """What one step of fine scales and of fine minimums is for each group; the minimum's without its sign."""

    def __init__(self, groups: Groups, most_fine: int, scale: Float32, minimum: Float32) -> None:
        self._groups = groups
        self._most_fine = most_fine
        self.scale = scale
        self._minimum = minimum

    def best(self, fine_scale: Float32, steps: Sequence[int], sums: GroupSums) -> tuple[Float32, Float32]:
        """The fine scale among those beside ``fine_scale``, with the minimum that suits it, which fits given codes best."""
        groups = self._groups
        found = (np.zeros_like(fine_scale), np.zeros_like(fine_scale))
        least = np.full_like(fine_scale, np.inf)
        for step in steps:
            fine = np.clip(fine_scale + np.float32(step), 0, self._most_fine)
            below = (fine * self.scale * sums.codes - groups.total) / np.float32(groups.size)
            fine_minimum = np.clip(np.rint(_ratio(below, self._minimum)), 0, self._most_fine)
            error = groups.error(fine * self.scale, -fine_minimum * self._minimum, sums)
            better = error < least
            found = np.where(better, fine, found[0]), np.where(better, fine_minimum, found[1])
            least = np.minimum(error, least)
        return found

    def round(self, fine_scale: Float32, fine_minimum: Float32, most: int) -> None:
        self._groups.round(fine_scale * self.scale, -fine_minimum * self._minimum, 0, most)


def _for_groups(coarse: NDArray[np.float16], per_coarse: int) -> Float32:
    return np.repeat(coarse.astype(np.float32), per_coarse)


def _largest(numbers: Float32, per_coarse: int) -> Float32:
    largest: Float32 = numbers.reshape(-1, per_coarse).max(axis=1)
    return largest


def _ratio(numbers: Float32, units: Float32) -> Float32:
    """``numbers / units``, 0 where the unit is 0."""
    return np.divide(numbers, units, out=np.zeros_like(numbers), where=units > 0)
