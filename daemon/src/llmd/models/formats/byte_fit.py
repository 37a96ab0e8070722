"""Fit groups of weights to int8 values with a shared scale; each group uses a few evenly spaced values."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.models.formats.float16 import float16_from, to_float16
from llmd.models.formats.group_fit import GroupFit, Groups, GroupSums, fit_affine
from llmd.models.plain_formats import Float32

LEAST, MOST = -128, 127
STRETCHES = (1.0, 1.05, 1.1, 1.16)
"""Coarse scales to try, as multiples of the smallest one with which every group fits."""


class ByteFit(msgspec.Struct, frozen=True):
    """A fit in which a weight is ``coarse * (step * code - below)``."""

    coarse: NDArray[np.float16]
    """``[coarse groups]``."""
    step: Float32
    """Integers ``[groups]``."""
    below: Float32
    """Integers ``[groups]``."""


def most_step(most: int, bits: int) -> int:
    """Return the largest step of ``bits`` bits with which codes ``0 .. most`` fit in a byte."""
    return min((1 << bits) - 1, (MOST - LEAST) // most)


def fit_bytes(groups: Groups, most: int, most_step: int, per_coarse: int) -> ByteFit:
    """Fit ``coarse * (step * code - below)`` with codes ``0 .. most``; store the codes in ``groups``.

    ``per_coarse`` groups share a coarse scale. ``step * code - below`` is an int8 for every code, and
    ``below`` is not negative.

    Raises:
        ArithmeticError: a coarse scale is outside the range of float16.
    """
    free = fit_affine(groups, most, minimum_below_zero=True)
    ends = free.minimum / np.float32(LEAST), (free.minimum + free.scale * np.float32(most)) / np.float32(MOST)
    needed = np.maximum(np.maximum(*ends), free.scale / np.float32(most_step))
    search = _Search(groups, free, most, most_step)
    coarse = search.coarse(needed.reshape(-1, per_coarse).max(axis=1), per_coarse)
    unit = _for_groups(coarse, per_coarse)
    step, below = search.steps(unit)
    groups.round(step * unit, -below * unit, 0, most)
    coarse = _least_squares(groups, step, below, per_coarse)
    unit = _for_groups(coarse, per_coarse)
    groups.round(step * unit, -below * unit, 0, most)
    return ByteFit(coarse, step, below)


class _Search(msgspec.Struct, frozen=True):
    """Searches integer steps next to the steps that groups would have without a byte's limits."""

    groups: Groups
    free: GroupFit
    most: int
    most_step: int

    def coarse(self, least: Float32, per_coarse: int) -> NDArray[np.float16]:
        """Return the coarse scales with the least error for the codes of the free fit."""
        found, error = np.zeros(len(least), np.float16), np.full(len(least), np.inf, np.float32)
        for stretch in STRETCHES:
            coarse = float16_from(least * np.float32(stretch))
            unit = _for_groups(coarse, per_coarse)
            lost = np.full_like(unit, np.inf)
            for step in self._nearest_steps(unit):
                below = self._below(step, unit, self.free.sums)
                lost = np.minimum(lost, self.groups.error(step * unit, -below * unit, self.free.sums))
            lost = lost.reshape(-1, per_coarse).sum(axis=1)
            found, error = np.where(lost < error, coarse, found), np.minimum(lost, error)
        return found

    def steps(self, unit: Float32) -> tuple[Float32, Float32]:
        """Return the steps and offsets (``below``) with the least error, with codes chosen for each step."""
        groups, found, least = self.groups, (unit, unit), np.full_like(unit, np.inf)
        for step in self._nearest_steps(unit):
            shorter: Float32 = (step * unit - self.free.scale) * np.float32(self.most / 2)
            below = self._fitting(step, _ratio(shorter - self.free.minimum, unit))
            groups.round(step * unit, -below * unit, 0, self.most)
            sums = groups.sums()
            below = self._below(step, unit, sums)
            error = groups.error(step * unit, -below * unit, sums)
            found = np.where(error < least, step, found[0]), np.where(error < least, below, found[1])
            least = np.minimum(error, least)
        return found

    def _nearest_steps(self, unit: Float32) -> Iterator[Float32]:
        lower = np.floor(_ratio(self.free.scale, unit))
        for step in (lower, lower + np.float32(1)):
            yield np.clip(step, 0, self.most_step)

    def _below(self, step: Float32, unit: Float32, sums: GroupSums) -> Float32:
        """Return the offset that fits given codes best."""
        return self._fitting(
            step, _ratio((step * unit * sums.codes - self.groups.total) / np.float32(self.groups.size), unit)
        )

    def _fitting(self, step: Float32, below: Float32) -> Float32:
        """Round the offset to an integer with which every code gives an int8."""
        fitting: Float32 = np.clip(
            np.rint(below), np.maximum(step * np.float32(self.most) - np.float32(MOST), 0), -LEAST
        )
        return fitting


def _least_squares(groups: Groups, step: Float32, below: Float32, per_coarse: int) -> NDArray[np.float16]:
    """Return the coarse scales of least squared error for the current codes, steps and offsets."""
    sums = groups.sums()
    products = step * sums.products - below * groups.total
    squares = step * (step * sums.squares - 2 * below * sums.codes) + below * below * np.float32(groups.size)
    numerator, denominator = (of.reshape(-1, per_coarse).sum(axis=1) for of in (products, squares))
    ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return to_float16(ratio)


def _for_groups(coarse: NDArray[np.float16], per_coarse: int) -> Float32:
    return np.repeat(coarse.astype(np.float32), per_coarse)


def _ratio(numbers: Float32, units: Float32) -> Float32:
    """Return ``numbers / units``, or 0 if the unit is 0."""
    return np.divide(numbers, units, out=np.zeros_like(numbers), where=units > 0)
