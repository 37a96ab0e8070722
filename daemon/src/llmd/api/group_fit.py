"""What fits scales to groups of weights while a model is quantised, where a device has something faster than NumPy."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from llmd.api.step import Float32


class GroupFitter(Protocol):
    """The searches of `llmd.models.formats.group_fit`, which explains them, to the same bits.

    Weights are float32 ``[group_size, groups]`` in C order. Thread-safe; the caller owns what is returned.
    """

    def fit_affine(self, weights: Float32, most: int, *, minimum_below_zero: bool) -> Float32:
        """Return float32 ``[6, groups]``: the fields of a `GroupFit`, those of its sums in their place.

        Codes are ``0 .. most``.
        """
        ...

    def fit_symmetric(self, weights: Float32, half: int) -> Float32:
        """As `fit_affine` for codes ``-half .. half - 1``, with minimums of 0."""
        ...


@runtime_checkable
class FitsGroups(Protocol):
    """A device that helps to quantise the weights that it loads."""

    @property
    def group_fitter(self) -> GroupFitter:
        """What searches; any number of threads use it at once."""
        ...
