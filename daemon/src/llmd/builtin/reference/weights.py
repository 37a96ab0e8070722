"""Weights as the reference backend holds them: float64, or int8 codes with scales."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import WeightData

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def to_float64(data: WeightData) -> Float64:
    """Return a plain weight as float64, exactly."""
    if data.format == "bf16":
        return (data.data.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return data.data.astype(np.float64)


class Matrix(Protocol):
    """A weight ``[out, in]`` that multiplies one row at a time."""

    nbytes: int

    def multiply(self, row: Float32) -> Float64:
        """``[in]`` → ``[out]``."""
        ...


class PlainMatrix:
    """A weight in a plain format."""

    def __init__(self, data: WeightData) -> None:
        self._matrix = to_float64(data)
        self.nbytes = self._matrix.nbytes

    def multiply(self, row: Float32) -> Float64:
        product: Float64 = np.dot(self._matrix, row.astype(np.float64))
        return product


class Q8Matrix:
    """A ``q8`` weight times a row that is itself quantised for each group of the weight.

    Per group: ``a = max|x|``; codes ``rint(x * (127 / a))`` in -127..127 with scale ``a / 127`` (all float32, ties
    to even; a group of zeros has scale 0). The dot products of codes are exact integers; they are scaled and
    added over the groups in float64.
    """

    def __init__(self, data: WeightData) -> None:
        assert data.scales is not None, "q8 weights come with scales"
        self._group_size = data.group_size
        self._codes = self._grouped(data.integers().astype(np.float32))
        self._scales = data.scales.values().astype(np.float64)
        self.nbytes = self._codes.nbytes + self._scales.nbytes

    def multiply(self, row: Float32) -> Float64:
        codes, scales = quantize_row(self._grouped(row[None])[0])
        dots = np.einsum("ogk,gk->og", self._codes, codes)
        total: Float64 = np.sum(dots.astype(np.float64) * (self._scales * scales.astype(np.float64)), axis=1)
        return total

    def _grouped(self, matrix: Float32) -> Float32:
        """``[out, in]`` → ``[out, groups, group_size]``, a short last group filled with zeros."""
        missing = -matrix.shape[1] % self._group_size
        return np.pad(matrix, ((0, 0), (0, missing))).reshape(matrix.shape[0], -1, self._group_size)


def quantize_row(groups: Float32) -> tuple[Float32, Float32]:
    """Quantise activations ``[groups, group_size]`` to codes of the same shape and scales ``[groups]``."""
    largest = np.abs(groups).max(axis=1)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0)).astype(np.float32)
    codes = np.clip(np.rint(groups * inverse[:, None]), -127, 127)
    return codes.astype(np.float32), (largest / np.float32(127)).astype(np.float32)


def make_matrix(data: WeightData) -> Matrix:
    """Return the weight ready to multiply."""
    return Q8Matrix(data) if data.format == "q8" else PlainMatrix(data)
