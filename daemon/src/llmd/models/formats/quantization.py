"""Quantise plain weights to our own formats. docs/formats.md defines every step."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS, IntegerFormat
from llmd.api.quantizer import Quantizer
from llmd.api.tensors import Format, GroupScales, Outliers, WeightData
from llmd.models.formats.byte_fit import fit_bytes, most_step
from llmd.models.formats.float16 import check_weights, to_float16, units_of
from llmd.models.formats.group_fit import Groups, fit_affine, fit_symmetric
from llmd.models.formats.outlier_fit import least_units, take_outliers
from llmd.models.formats.row_chunks import CHUNK_ELEMENTS, for_row_chunks
from llmd.models.plain_formats import Float32, to_float32

QUANTIZER_ELEMENTS = 1 << 18
"""Elements per call of a quantizer: milliseconds of work, so that other Python threads get to run."""


class _Quantized(msgspec.Struct, frozen=True):
    """Quantised groups. Scales, minimums and outliers have no axis for rows."""

    codes: Float32
    """``[group_size, groups]``."""
    scales: GroupScales
    minimums: GroupScales | None = None
    outliers: Outliers | None = None


class _Piece(msgspec.Struct, frozen=True):
    """A range of the inputs of a row, split into groups of one size."""

    inputs: slice
    groups: slice
    group_size: int


def quantize(
    data: NDArray[np.generic], name: Format, source: Format = "f32", quantizer: Quantizer | None = None
) -> WeightData:
    """Quantise a plain weight ``[out, in]`` to one of `llmd.api.OWN_FORMATS`.

    The bits of a row do not depend on other rows, nor on the ``quantizer``, which replaces NumPy.

    Raises:
        ArithmeticError: a value is not finite, or too large for a float16 scale.
        ValueError: the format has blocks, and rows are not a whole number of them.
    """
    form = INTEGER_FORMATS[name]
    num_rows, row_len = data.shape
    if form.coarse_size and row_len % form.coarse_size:
        raise ValueError(f"rows of {row_len} weights are not whole blocks of {form.coarse_size}")
    quantized = _empty(form, num_rows, row_len)

    def of_rows(rows: slice) -> None:
        into = quantized.rows(rows)
        if quantizer is None or not quantizer.quantize(data[rows], source, into):
            _quantize_rows(to_float32(data[rows], source), into)

    for_row_chunks(num_rows, row_len, of_rows, CHUNK_ELEMENTS if quantizer is None else QUANTIZER_ELEMENTS)
    return quantized


def _quantize_rows(weights: Float32, into: WeightData) -> None:
    check_weights(weights)
    for piece in _pieces(weights.shape[1], into.group_size):
        columns = np.ascontiguousarray(weights[:, piece.inputs].reshape(-1, piece.group_size).T)
        _put(into, piece, _quantize_groups(Groups(columns), INTEGER_FORMATS[into.format]))


def _empty(form: IntegerFormat, num_rows: int, row_len: int) -> WeightData:
    size = form.row_group_size(row_len)
    groups = -(-row_len // size)

    def scales() -> GroupScales:
        if not form.coarse_size:
            return GroupScales(np.empty((num_rows, groups), np.float16))
        coarse = np.empty((num_rows, row_len // form.coarse_size), np.float16)
        return GroupScales(coarse, np.empty((num_rows, groups), np.uint8))

    def outliers() -> Outliers:
        shape = (num_rows, groups, form.outliers)
        return Outliers(np.empty(shape, np.uint8), np.empty(shape, np.int8))

    return WeightData(
        form.name,
        np.empty((num_rows, row_len), np.uint8),
        scales(),
        scales() if form.has_minimum else None,
        size,
        outliers() if form.outliers else None,
    )


def _pieces(row_len: int, size: int) -> Iterator[_Piece]:
    """Yield the whole groups of a row, and then the short one, if there is one."""
    whole, rest = divmod(row_len, size)
    if whole:
        yield _Piece(slice(0, whole * size), slice(0, whole), size)
    if rest:
        yield _Piece(slice(whole * size, row_len), slice(whole, whole + 1), rest)


def _put(target: WeightData, piece: _Piece, found: _Quantized) -> None:
    num_rows = len(target.data)
    target.data[:, piece.inputs] = found.codes.T.reshape(num_rows, -1)
    for into, scales in ((target.scales, found.scales), (target.minimums, found.minimums)):
        if into is None or scales is None:
            continue
        if into.fine is None or scales.fine is None:
            into.coarse[:, piece.groups] = scales.coarse.reshape(num_rows, -1)
        else:
            into.coarse[:] = scales.coarse.reshape(num_rows, -1)
            into.fine[:] = scales.fine.reshape(num_rows, -1)
    if target.outliers is not None and found.outliers is not None:
        for part, values in zip(target.outliers.arrays, found.outliers.arrays, strict=True):
            part[:, piece.groups] = values.reshape(num_rows, -1, values.shape[-1])


def _quantize_groups(groups: Groups, form: IntegerFormat) -> _Quantized:
    if form.coarse_size:
        return _bytes(groups, form)
    if form.has_minimum:
        return _with_minimums(groups, form)
    return _eight_bits(groups, form.outliers) if form.bits == 8 else _symmetric(groups, form)


def _eight_bits(groups: Groups, num_outliers: int) -> _Quantized:
    magnitudes = np.abs(groups.weights)
    scales = least_units(magnitudes, num_outliers) if num_outliers else units_of(magnitudes.max(axis=0), 127)
    divisors = np.where(scales == 0, np.float32(1), scales.astype(np.float32))
    codes = np.rint(np.divide(groups.weights, divisors, out=groups.codes), out=groups.codes)
    outliers = take_outliers(codes, num_outliers) if num_outliers else None
    codes += np.float32(128)
    return _Quantized(codes, GroupScales(scales), outliers=outliers)


def _symmetric(groups: Groups, form: IntegerFormat) -> _Quantized:
    half = form.zero
    scales = to_float16(fit_symmetric(groups, half).scale)
    groups.round(scales.astype(np.float32), None, -half, half - 1)
    return _Quantized(groups.codes + np.float32(half), GroupScales(scales))


def _with_minimums(groups: Groups, form: IntegerFormat) -> _Quantized:
    most = (1 << form.bits) - 1
    fit = fit_affine(groups, most, minimum_below_zero=False)
    scales, minimums = to_float16(fit.scale), to_float16(fit.minimum)
    groups.round(scales.astype(np.float32), minimums.astype(np.float32), 0, most)
    return _Quantized(groups.codes, GroupScales(scales), GroupScales(minimums))


def _bytes(groups: Groups, form: IntegerFormat) -> _Quantized:
    most = (1 << form.bits) - 1
    fit = fit_bytes(groups, most, most_step(most, form.fine_bits), form.coarse_size // form.group_size)
    return _Quantized(
        groups.codes,
        GroupScales(fit.coarse, fit.step.astype(np.uint8)),
        GroupScales(-fit.coarse, fit.below.astype(np.uint8)),
    )
