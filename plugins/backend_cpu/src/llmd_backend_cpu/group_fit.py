"""Fits scales to groups of weights, for the core that quantises them; csrc/group_fit.hpp says how fast."""

from __future__ import annotations

import numpy as np

from llmd.api.step import Float32
from llmd_backend_cpu import _ext


class NativeFitter:
    """See `llmd.api.group_fit.GroupFitter`."""

    def fit_affine(self, weights: Float32, most: int, *, minimum_below_zero: bool) -> Float32:
        fit = _results(weights)
        _ext.fit_affine(weights, most, minimum_below_zero, fit)
        return fit

    def fit_symmetric(self, weights: Float32, half: int) -> Float32:
        fit = _results(weights)
        _ext.fit_symmetric(weights, half, fit)
        return fit


def _results(weights: Float32) -> Float32:
    return np.empty((6, weights.shape[1]), np.float32)
