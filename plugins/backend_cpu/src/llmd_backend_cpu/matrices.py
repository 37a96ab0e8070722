"""Gives the matrices of a program to native weights."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, PLAIN_FORMATS, GroupScales, TensorSource, Weight, WeightData
from llmd_backend_cpu import _ext


class Member(msgspec.Struct, frozen=True):
    """A matrix to be packed: a weight, or a member of one that is a stack."""

    index: int
    """Of the weight in the program."""
    number: int
    """In the stack; 0 if the weight is none."""
    weight: Weight


def matrices(weight: Weight) -> Iterator[Weight]:
    """Yield the matrices of a stack, or else the weight itself."""
    ref = weight.ref
    if not (ref.is_stack and ref.is_matrix):
        yield weight
        return
    for number in range(*(ref.members or (0, ref.shape[0]))):
        yield Weight(ref.member(number), weight.format)


def members_of(index: int, weight: Weight) -> Iterator[Member]:
    """Yield the matrices of a weight, which has this index in its program."""
    for number, matrix in enumerate(matrices(weight)):
        yield Member(index, number, matrix)


def add_absent(native: _ext.Weights, weight: Weight, tensors: TensorSource, *, joins: bool) -> None:
    """Declare a matrix of a cached expert in a plain or a scaled format."""
    rows, cols = weight.ref.data_shape
    if weight.format in PLAIN_FORMATS:
        native.add_absent(weight.format, rows, cols, 0, joins=joins)
        return
    first = (weight.ref.rows or (0,))[0]
    row = msgspec.structs.replace(weight.ref, rows=(first, first + 1), period=None)
    group_size = tensors.read(Weight(row, weight.format)).group_size
    native.add_absent("fp8", rows, cols, group_size, joins=joins)


def fill(native: _ext.Weights, member: Member, tensors: TensorSource) -> None:
    """Read a matrix, and pack or copy it to its place."""
    if member.weight.format in INTEGER_FORMATS:
        pack(native, member, tensors)
    else:
        data = tensors.read(member.weight)
        scales = None if data.scales is None else data.scales.coarse.view(np.float32)
        native.copy(member.index, _elements(data), scales, data.group_size, member.number)


def pack(native: _ext.Weights, member: Member, tensors: TensorSource) -> None:
    """Pack a quantised matrix: from the blocks of its file if it has any, else from its integers."""
    weight = member.weight
    blocks = tensors.stored_blocks(weight)
    if blocks is None or not native.pack_blocks(member.index, weight.format, blocks, member=member.number):
        # If scales are not finite, `read` raises an error that names the weight.
        _pack_integers(native, member, tensors.read(weight))


def add_plain(native: _ext.Weights, weight: Weight, data: WeightData, *, joins: bool) -> None:
    """Add a plain weight: a vector, or a stack of vectors, is widened; a matrix is used in place."""
    elements = data.data.view(np.float32) if data.format == "f32" else data.data.view(np.uint16)
    if weight.ref.is_matrix:
        native.add_matrix(data.format, elements, joins=joins)
    else:
        native.add_vector(data.format, elements.reshape(-1))


def add_float8(native: _ext.Weights, data: WeightData, *, joins: bool) -> None:
    """Add a matrix of FP8 numbers, which is used in place with its scales."""
    assert data.scales is not None, "scaled weights have scales"
    scales = data.scales.coarse.view(np.float32)
    native.add_float8(data.data.view(np.uint8), scales, data.group_size, joins=joins)


def add_integers(native: _ext.Weights, weight: Weight, *, joins: bool) -> None:
    """Declare the shape and format of a quantised weight."""
    integers = INTEGER_FORMATS[weight.format]
    rows, cols = weight.ref.data_shape
    native.add_integers(
        rows,
        cols,
        # One scale per row is the same as an equal scale for each of its activation groups.
        group_size=integers.row_group_size(cols) if integers.group_size else integers.activation_group(cols),
        coarse_size=integers.coarse_size,
        bits=integers.bits,
        zero=integers.zero,
        has_minimum=integers.has_minimum,
        wide_scales=integers.wide_scales,
        book=list(integers.book),
        in_int8=integers.in_int8,
        outliers=integers.outliers,
        joins=joins,
    )


def _pack_integers(native: _ext.Weights, member: Member, data: WeightData) -> None:
    """Pack the integers of a quantised weight."""
    assert data.scales is not None, "integer weights have scales"
    minimums, outliers = data.minimums, data.outliers
    native.pack(
        member.index,
        data.data.view(np.uint8),
        _bits(data.scales.coarse),
        _fine(data.scales),
        None if minimums is None else _bits(minimums.coarse),
        None if minimums is None else _fine(minimums),
        None if outliers is None else outliers.columns,
        None if outliers is None else outliers.residuals,
        member=member.number,
    )


def _elements(data: WeightData) -> NDArray[np.float32] | NDArray[np.uint16] | NDArray[np.uint8]:
    """Return the elements of a plain or FP8 weight as native code takes them."""
    if data.format == "f32":
        return data.data.view(np.float32)
    return data.data.view(np.uint16) if data.format in PLAIN_FORMATS else data.data.view(np.uint8)


def _bits(coarse: NDArray[np.floating]) -> NDArray[np.uint16] | NDArray[np.float32]:
    return coarse.view(np.float32) if coarse.dtype == np.float32 else coarse.view(np.uint16)


def _fine(scales: GroupScales) -> NDArray[np.int8] | None:
    return None if scales.fine is None else scales.fine.view(np.int8)
