"""Search scales and minimums of least squared error for groups of weights. docs/formats.md defines the steps.

Groups are the columns of float32 ``[group_size, groups]``, so that one NumPy call handles an element of every
group. All arithmetic is float32, and sums run in the order of a group's weights, so that the result for a
group does not depend on the other groups. The search alternates between rounding weights to codes and least
squares over the codes, from several starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from llmd.models.plain_formats import Float32

STRETCHES = (-0.9, -0.3, 0.3, 0.9)
"""Starts of the search: how many steps the range of a group is longer than the range of the codes."""
ROUNDS = 2
_TINY = np.float32(1e-30)


class GroupSums(msgspec.Struct, frozen=True):
    """Sums over each group."""

    codes: Float32
    squares: Float32
    """Of the squared codes."""
    products: Float32
    """Of codes times weights."""


class GroupFit(msgspec.Struct, frozen=True):
    """A scale and a minimum for each group."""

    scale: Float32
    minimum: Float32
    sums: GroupSums
    """Of the codes to which scale and minimum were fitted."""
    error: Float32
    """Squared error minus the sum of the squared weights."""


class Groups:
    """Groups of weights, float32 ``[group_size, groups]``, and their most recent codes."""

    def __init__(self, weights: Float32) -> None:
        self.weights = weights
        self.size = len(weights)
        self.total = _sum(weights)
        self.codes = np.empty_like(weights)
        self._products = np.empty_like(weights)

    def round(self, scale: Float32, minimum: Float32 | None, least: int, most: int) -> None:
        """Set the codes to ``rint(weight / scale - minimum / scale)``, clipped to ``least .. most``.

        The codes are 0 if the scale is 0. Divisions are multiplications by the inverse of the
        scale.
        """
        usable = np.abs(scale) > _TINY
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=usable)
        np.multiply(self.weights, inverse, out=self.codes)
        if minimum is not None:
            self.codes -= minimum * inverse
        np.rint(self.codes, out=self.codes)
        np.clip(self.codes, np.float32(least), np.float32(most), out=self.codes)

    def sums(self) -> GroupSums:
        """Return the sums of the current codes."""
        squares = _sum(np.multiply(self.codes, self.codes, out=self._products))
        products = _sum(np.multiply(self.codes, self.weights, out=self._products))
        return GroupSums(_sum(self.codes), squares, products)

    def error(self, scale: Float32, minimum: Float32, sums: GroupSums) -> Float32:
        """Return the squared error of ``scale * code + minimum`` minus the sum of the squared weights."""
        of_scale = scale * (scale * sums.squares - 2 * sums.products)
        of_minimum = minimum * (self.size * minimum + 2 * (scale * sums.codes - self.total))
        error: Float32 = of_scale + of_minimum
        return error


def fit_affine(groups: Groups, most: int, *, minimum_below_zero: bool) -> GroupFit:
    """Fit ``scale * code + minimum`` with codes ``0 .. most`` and non-negative scales."""
    lowest, highest = groups.weights.min(axis=0), groups.weights.max(axis=0)
    if minimum_below_zero:
        lowest, highest = np.minimum(lowest, 0), np.maximum(highest, 0)

    def candidates() -> Iterator[GroupFit]:
        for stretch in STRETCHES:
            scale, minimum = (highest - lowest) / np.float32(most + stretch), lowest
            for _ in range(ROUNDS):
                groups.round(scale, minimum, 0, most)
                sums = groups.sums()
                scale, minimum = _regression(groups, sums, scale, minimum)
                if minimum_below_zero:
                    scale = np.where(minimum >= 0, _without_minimum(sums, scale), scale)
                    minimum = np.minimum(minimum, 0)
            yield GroupFit(scale, minimum, sums, groups.error(scale, minimum, sums))

    return _best(candidates())


def fit_symmetric(groups: Groups, half: int) -> GroupFit:
    """Fit ``scale * integer`` with integers ``-half .. half - 1``.

    The weight farthest from zero gets a negative integer, because that side is longer.
    """
    lowest, highest = groups.weights.min(axis=0), groups.weights.max(axis=0)
    farthest = np.where(-lowest > highest, lowest, highest)
    nothing = np.zeros_like(farthest)

    def candidates() -> Iterator[GroupFit]:
        for stretch in STRETCHES:
            scale = farthest / np.float32(-half - stretch / 2)
            for _ in range(ROUNDS):
                groups.round(scale, None, -half, half - 1)
                sums = groups.sums()
                scale = _without_minimum(sums, scale)
            yield GroupFit(scale, nothing, sums, groups.error(scale, nothing, sums))

    return _best(candidates())


def _sum(values: Float32) -> Float32:
    """Sum each column from top to bottom, which NumPy does not do for a single column: it sums pairwise."""
    if values.shape[1] == 1:
        running: Float32 = np.add.accumulate(values, axis=0)[-1]
        return running
    total: Float32 = values.sum(axis=0)
    return total


def _regression(groups: Groups, sums: GroupSums, scale: Float32, minimum: Float32) -> tuple[Float32, Float32]:
    """Fit scale and minimum by least squares; keep those of groups whose codes are all equal."""
    spread = groups.size * sums.squares - sums.codes * sums.codes  # whole numbers below 2**24: exact
    varied = spread > 0
    fitted = (groups.size * sums.products - groups.total * sums.codes) / np.where(varied, spread, 1)
    rest = (groups.total - fitted * sums.codes) / groups.size
    return np.where(varied, fitted, scale), np.where(varied, rest, minimum)


def _without_minimum(sums: GroupSums, scale: Float32) -> Float32:
    """Fit without a minimum by least squares; keep the scale of groups whose codes are all 0."""
    some = sums.squares > 0
    return np.where(some, sums.products / np.where(some, sums.squares, 1), scale)


def _best(candidates: Iterator[GroupFit]) -> GroupFit:
    """Return the fit with the least error for each group; the first one wins a tie."""
    best = next(candidates)
    for fit in candidates:
        best = _choose(fit.error < best.error, fit, best)
    return best


def _choose(better: np.typing.NDArray[np.bool_], fit: GroupFit, other: GroupFit) -> GroupFit:
    pairs = zip(msgspec.structs.astuple(fit.sums), msgspec.structs.astuple(other.sums), strict=True)
    return GroupFit(
        np.where(better, fit.scale, other.scale),
        np.where(better, fit.minimum, other.minimum),
        GroupSums(*(np.where(better, one, two) for one, two in pairs)),
        np.where(better, fit.error, other.error),
    )
