"""The weights of the reference backend: float64, or integers with scales."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.program import ActivationDtype, Precision
from llmd.api.tensors import PLAIN_FORMATS, TensorRef, WeightData
from llmd.builtin.reference.rounding import round_to
from llmd.models.formats.dequantization import dequantize

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def to_float64(data: WeightData) -> Float64:
    """Return the values of a weight as float64; they are all exact in float32."""
    if data.format not in PLAIN_FORMATS:
        return dequantize(data).astype(np.float64)
    if data.format == "bf16":
        return (data.data.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return data.data.astype(np.float64)


class Matrix(Protocol):
    """A weight ``[out, in]`` that multiplies one row at a time."""

    nbytes: int

    def multiply(self, row: Float32) -> Float64:
        """Multiply ``[in]`` and return ``[out]``."""
        ...


class PlainMatrix:
    """A weight that multiplies rows after rounding each element to ``precision``."""

    def __init__(self, matrix: Float64, precision: Precision = "f32") -> None:
        self._matrix = matrix
        self._precision: Precision = precision
        self.nbytes = self._matrix.nbytes

    def multiply(self, row: Float32) -> Float64:
        product: Float64 = np.dot(self._matrix, round_to(self._precision, row))
        return product


class IntegerMatrix:
    """An integer weight. It multiplies rows after rounding them to int8 or int9 in activation groups.

    Per activation group: ``a = max|x|``; codes ``rint(x * (127 / a))`` in -127..127 with scale ``a / 127``
    (all float32, ties to even; a group of zeros has scale 0). For 9 bits, 254 replaces 127. Integer dot
    products are exact; they and the sums of codes are scaled and added over the groups in float64.
    """

    def __init__(self, data: WeightData) -> None:
        assert data.scales is not None, "integers come with scales"
        form = INTEGER_FORMATS[data.format]
        self._activation_group = form.activation_group(data.data.shape[1])
        self._most = form.activation_limit
        self._group_size = data.group_size if form.group_size else self._activation_group
        self._integers = self._grouped(data.integers().astype(np.float32), self._group_size)
        # If a whole row shares a scale, all its activation groups use it.
        groups = np.arange(self._integers.shape[1]) * self._group_size // data.group_size
        self._scales = data.scales.values().astype(np.float64)[:, groups]
        self._minimums: Float64 | None = None
        if data.minimums is not None:
            self._minimums = data.minimums.values().astype(np.float64)[:, groups]
        self.nbytes = self._integers.nbytes + self._scales.nbytes

    def multiply(self, row: Float32) -> Float64:
        rounded, row_scales = quantize_row(self._grouped(row[None], self._activation_group)[0], self._most)
        codes = rounded.reshape(-1, self._group_size)[: self._integers.shape[1]]
        per_group = self._activation_group // self._group_size
        scales = np.repeat(row_scales.astype(np.float64), per_group)[: len(codes)]
        dots = np.einsum("ogk,gk->og", self._integers, codes).astype(np.float64)
        products = dots * self._scales
        if self._minimums is not None:
            products += self._minimums * codes.sum(axis=1, dtype=np.float64)
        total: Float64 = np.sum(products * scales, axis=1)
        return total

    @staticmethod
    def _grouped(matrix: Float32, size: int) -> Float32:
        """Reshape ``[out, in]`` to ``[out, groups, size]``; pad a short last group with zeros."""
        missing = -matrix.shape[1] % size
        whole = np.pad(matrix, ((0, 0), (0, missing))) if missing else matrix
        return whole.reshape(matrix.shape[0], -1, size)


def quantize_row(groups: Float32, most: int = 127) -> tuple[Float32, Float32]:
    """Quantise activations ``[groups, group_size]`` to codes of at most ``most``, and scales ``[groups]``."""
    largest = np.abs(groups).max(axis=1)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, np.float32(most) / largest, np.float32(0)).astype(np.float32)
    codes = np.clip(np.rint(groups * inverse[:, None]), -most, most)
    return codes.astype(np.float32), (largest / np.float32(most)).astype(np.float32)


def make_matrix(
    data: WeightData, activations: ActivationDtype = "int8", precision: Precision = "f32"
) -> Matrix:
    """Return a matrix for the weight; ``activations`` round its rows if its format is an integer format,
    otherwise ``precision``.
    """
    if data.format not in INTEGER_FORMATS:
        return PlainMatrix(to_float64(data), precision)
    return IntegerMatrix(data) if activations == "int8" else PlainMatrix(to_float64(data), activations)


def make_matrices(
    data: WeightData, ref: TensorRef, activations: ActivationDtype = "int8", precision: Precision = "f32"
) -> tuple[Matrix, ...]:
    """Return the matrices of a stack, or the one matrix of a weight that is none: see `make_matrix`."""
    rows = ref.view_shape[-2]
    pieces = (data.rows(slice(first, first + rows)) for first in range(0, ref.data_shape[0], rows))
    return tuple(make_matrix(piece, activations, precision) for piece in pieces)
