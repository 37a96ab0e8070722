"""Weights that rows are multiplied by, in the layout of ``kernels/weights.cuh``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import PLAIN_FORMATS, Format, GroupScales, WeightData
from llmd_backend_cuda.matrix_forms import CHUNK, TILE, MatrixForm, MatrixSize
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

_STAGING_BYTES = 64 << 20
"""At most this much of a matrix is on the device in the layout of the file."""

_WARPS = 8

_MOST_SCALE = 2.0**15
"""The largest power of two in float16."""


class ScaleArgs(ctypes.Structure):
    """``struct ScaleArrays`` of ``kernels/scales.cuh``."""

    _fields_ = (
        ("scales", ctypes.c_void_p),
        ("minimums", ctypes.c_void_p),
        ("fine", ctypes.c_void_p),
        ("of_rows", ctypes.c_void_p),
        ("groups", ctypes.c_int32),
    )


class MatrixArgs(ctypes.Structure):
    """``struct Matrix`` of ``kernels/weights.cuh``."""

    _fields_ = (
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        ("scales", ScaleArgs),
        ("chunks", ctypes.c_int32),
    )


class _PackArgs(ctypes.Structure):
    _fields_ = (
        ("source", ctypes.c_void_p),
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        ("out", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("first_tile", ctypes.c_int32),
        ("tiles", ctypes.c_int32),
        ("chunks", ctypes.c_int32),
    )


class DeviceMatrix(msgspec.Struct, frozen=True):
    """A matrix in device memory, or a stack: the tiles of its members follow one another."""

    size: MatrixSize
    low: Memory
    """Low bits of the codes, or float16 elements."""
    high: Memory | None
    """High bits of the codes."""
    scales: Memory | None
    minimums: Memory | None
    fine: Memory | None
    """Fine scales and minimums."""
    row_scales: Memory | None
    """Float32 scales of rows."""

    @classmethod
    def allocate(cls, runtime: Runtime, size: MatrixSize) -> Self:
        """Take the memory; its contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        form = size.form
        return cls(
            size,
            low=runtime.allocate(size.plane_bytes(form.low_bits)),
            high=runtime.allocate(size.plane_bytes(form.high_bits)) if form.high_bits else None,
            scales=runtime.allocate(size.scale_bytes) if size.scale_bytes else None,
            minimums=runtime.allocate(size.scale_bytes) if form.has_own_minimums else None,
            fine=runtime.allocate(size.fine_bytes) if size.fine_bytes else None,
            row_scales=runtime.allocate(size.row_scale_bytes) if size.row_scale_bytes else None,
        )

    def moved(self, place: Callable[[Memory], Memory]) -> Self:
        """Return the matrix with each memory replaced by what ``place`` returns for it."""
        others = (self.high, self.scales, self.minimums, self.fine, self.row_scales)
        return type(self)(
            self.size, place(self.low), *(None if memory is None else place(memory) for memory in others)
        )

    @property
    def args(self) -> MatrixArgs:
        """The matrix for kernels."""
        return MatrixArgs(
            low=self.low.pointer,
            high=_pointer(self.high),
            scales=ScaleArgs(
                scales=_pointer(self.scales),
                minimums=_pointer(self.minimums),
                fine=_pointer(self.fine),
                of_rows=_pointer(self.row_scales),
                groups=self.size.groups,
            ),
            chunks=self.size.chunks,
        )


def load_matrix(runtime: Runtime, data: WeightData) -> DeviceMatrix:
    """Copy a weight to the device and arrange it.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """
    return load_stack(runtime, 1, lambda _: data)


def load_stack(runtime: Runtime, members: int, read: Callable[[int], WeightData]) -> DeviceMatrix:
    """Copy the members of a stack to the device one after the other, and arrange them.

    ``read`` returns a member; all have the same shape and format.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """
    first = read(0)
    out, width = first.data.shape
    size = MatrixSize(MatrixForm.of(first.format, width), out, width, members)
    matrix = DeviceMatrix.allocate(runtime, size)
    for number in range(members):
        load_member(runtime, matrix, number, read(number) if number else first)
    return matrix


def load_member(runtime: Runtime, matrix: DeviceMatrix, number: int, data: WeightData) -> None:
    """Copy a member of a stack to the device, and arrange it.

    Raises:
        MemoryBudgetError: there is no memory for it in the layout of the file.
    """
    _pack(runtime, matrix, number, data)
    for memory, contents in _scales(matrix, data):
        runtime.upload(memory, number * contents.nbytes, contents)


def _scales(matrix: DeviceMatrix, data: WeightData) -> Iterator[tuple[Memory, NDArray[np.generic]]]:
    """Yield what a weight has besides its codes, each with the memory that it is for."""
    size, scales = matrix.size, data.scales
    if matrix.row_scales is not None:
        of_rows, scales = relative_scales(data, size)
        yield matrix.row_scales, of_rows
    for memory, found in ((matrix.scales, scales), (matrix.minimums, data.minimums)):
        if memory is not None and found is not None:
            yield memory, arranged(found.coarse, size)
    if matrix.fine is not None:
        yield matrix.fine, arranged_fine(data, size)


def relative_scales(data: WeightData, size: MatrixSize) -> tuple[NDArray[np.float32], GroupScales]:
    """Return the scales of a weight in a scaled format as those of its rows ``[tiles * 16]``, and those of
    groups relative to them.

    The largest scale of a row stays exact: relative to it, it is the largest power of two in float16. Others
    are rounded to float16, whose normal numbers go down to 2**-29 of that. Kernels multiply numbers that are
    2**8 smaller than those of the format, so that no product leaves float16.
    """
    assert data.scales is not None, "numbers come with scales"
    coarse = data.scales.coarse.astype(np.float32)
    largest = np.abs(coarse).max(axis=1, keepdims=True)
    divisors = np.where(largest > 0, largest, np.float32(1))
    of_rows = np.zeros(size.tiles * TILE, np.float32)
    of_rows[: size.out] = largest[:, 0] * (2.0**8 / _MOST_SCALE)
    groups = np.arange(size.groups) * size.form.group // data.group_size
    return of_rows, GroupScales((coarse / divisors * np.float32(_MOST_SCALE))[:, groups])


def arranged(coarse: NDArray[np.floating], size: MatrixSize) -> NDArray[np.float16]:
    """Return scales ``[out, groups]`` as float16 ``[tiles, groups, 8, 2]``: those of rows g and g + 8 are
    neighbours.

    Powers of two beyond float16 become its nearest one.
    """
    values = np.zeros((size.tiles * TILE, size.groups), np.float16)
    values[: size.out] = np.minimum(coarse, _MOST_SCALE)
    return np.ascontiguousarray(values.reshape(size.tiles, 2, 8, size.groups).transpose(0, 3, 2, 1))


def arranged_fine(data: WeightData, size: MatrixSize) -> NDArray[np.uint8]:
    """Return the fine scales and minimums of a weight with two levels, as ``kernels/scales.cuh`` has them."""
    form = size.form
    assert data.scales is not None, "integers come with scales"
    scales = _entries(data.scales.fine, size)
    if not form.minimum_bits:
        return (scales + 128).astype(np.uint8)
    assert data.minimums is not None, "as the form says"
    minimums = _entries(data.minimums.fine, size)
    both = minimums | scales << 8 if form.minimum_bits == 8 else scales | minimums << form.scale_bits
    words = (both & 0xFF).astype(np.uint8)
    rest = (both >> 8).astype(np.uint8)
    rest_bits = form.scale_bits + form.minimum_bits - 8
    if rest_bits == 4:
        rest = (rest[..., 0::2] | rest[..., 1::2] << 4).astype(np.uint8)
    chunks = [words, rest] if rest_bits else [words]
    return np.concatenate([part.reshape(size.tiles * size.chunks, -1) for part in chunks], axis=1)


def _entries(fine: NDArray[np.integer] | None, size: MatrixSize) -> NDArray[np.int32]:
    """Return fine values ``[out, groups]`` as ``[tiles, chunks, records, 4]``, the entries of lanes."""
    assert fine is not None, "there are two levels"
    padded = np.zeros((size.tiles * TILE, fine.shape[1]), np.int32)
    padded[: size.out] = fine
    of_half = CHUNK // 2 // size.form.group
    places = padded.reshape(size.tiles, 2, 8, size.chunks, 2, of_half).transpose(0, 3, 2, 5, 4, 1)
    return np.ascontiguousarray(places).reshape(size.tiles, size.chunks, -1, 4)


def _pack(runtime: Runtime, matrix: DeviceMatrix, number: int, data: WeightData) -> None:
    size, row_bytes = matrix.size, data.data[:1].nbytes
    step = max(TILE, _STAGING_BYTES // max(row_bytes, 1) // TILE * TILE)
    staging = runtime.allocate(min(step, size.out) * row_bytes)
    kernel = runtime.kernel(pack_spec(size.form, data.format))
    for first in range(0, size.out, step):
        rows = np.ascontiguousarray(data.data[first : first + step])
        runtime.upload(staging, 0, rows)
        tiles = -(-len(rows) // TILE)
        args = _PackArgs(
            source=staging.pointer,
            low=matrix.low.pointer,
            high=_pointer(matrix.high),
            out=len(rows),
            width=size.width,
            first_tile=number * size.tiles + first // TILE,
            tiles=tiles,
            chunks=size.chunks,
        )
        runtime.launch(Launch(kernel, (-(-tiles * size.chunks // _WARPS), 1, 1), 32 * _WARPS, args))
    runtime.synchronize()  # the staging memory is freed


def pack_spec(form: MatrixForm, source: Format) -> KernelSpec:
    """Return the kernel that arranges a weight of a format; it reads no scales."""
    defines = form.defines | {
        "GROUP": 1,
        "MINIMUM": 0,
        "SCALE_BITS": 0,
        "MINIMUM_BITS": 0,
        "NEGATED": 0,
        "FP8": 0,
    }
    if form.bits == 16:
        defines |= {"SOURCE": PLAIN_FORMATS.index(source)}
    return KernelSpec.of("pack", "pack", defines)


def _pointer(memory: Memory | None) -> int | None:
    return None if memory is None else memory.pointer
