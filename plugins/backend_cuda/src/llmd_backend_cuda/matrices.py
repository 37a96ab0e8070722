"""Weights that rows are multiplied by, in the layout of ``kernels/weights.cuh``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, PLAIN_FORMATS, Format, WeightData
from llmd.api.integer_formats import ROW_ACTIVATION_GROUP, IntegerFormat
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

TILE = 16
"""Weight rows of a tile."""

CHUNK = 64
"""Columns of a chunk."""

COARSE = 256
"""Columns that share a coarse scale."""

_STAGING_BYTES = 64 << 20
"""At most this much of a matrix is on the device in the layout of the file."""

_WARPS = 8

_MOST_SCALE = 2.0**15
"""The largest power of two in float16."""


class MatrixForm(msgspec.Struct, frozen=True):
    """What kernels are compiled for."""

    bits: int
    """Bits of a code; 16: float16 without scales."""
    group: int = 0
    """Columns that share a scale; 0: one scale for a row."""
    minimum: bool = False
    """Whether groups have minimums."""
    zero: int = 0
    """Subtracted from codes."""
    book: int = 0
    """Number of the book in ``kernels/book.cuh`` that codes index; 0: they are integers."""
    scale_bits: int = 0
    """Bits of a fine scale; 0: scales have one level."""
    minimum_bits: int = 0
    """Bits of a fine minimum; 0: there are none."""
    negated: bool = False
    """Whether coarse minimums are the negated coarse scales, and so not stored."""

    @classmethod
    def of(cls, name: Format, width: int) -> Self:
        """Return the form of a format in rows of ``width`` elements."""
        if name in PLAIN_FORMATS:
            return cls(16)
        form = INTEGER_FORMATS[name]
        group = form.row_group_size(width) if form.group_size else 0
        scale_bits, minimum_bits = _fine_bits(form)
        return cls(
            form.bits,
            group,
            form.has_minimum,
            form.zero,
            BOOKS.index(form.book),
            scale_bits,
            minimum_bits,
            form.in_int8,
        )

    @property
    def defines(self) -> dict[str, int]:
        """Macros of the kernels."""
        return {
            "BITS": self.bits,
            "GROUP": self.group,
            "MINIMUM": int(self.minimum),
            "ZERO": self.zero,
            "BOOK": self.book,
            "SCALE_BITS": self.scale_bits,
            "MINIMUM_BITS": self.minimum_bits,
            "NEGATED": int(self.negated),
        }

    @property
    def low_bits(self) -> int:
        """Bits of a code in the first array."""
        return {6: 4, 5: 4, 3: 2}.get(self.bits, self.bits)

    @property
    def high_bits(self) -> int:
        """Bits of a code in the second array."""
        return self.bits - self.low_bits

    @property
    def activation_group(self) -> int:
        """Columns of a row that share a scale, if rows are int8; 0 if the matrix is not in an integer format.

        It is `IntegerFormat.activation_group`.
        """
        if self.bits == 16:
            return 0
        return COARSE if self.scale_bits else self.group or ROW_ACTIVATION_GROUP

    @property
    def has_several_scales(self) -> bool:
        """Whether integers of a chunk have several scales for each row; those in int8 have one."""
        return 0 < self.group < CHUNK and not self.negated

    @property
    def has_own_minimums(self) -> bool:
        """Whether there are float16 minimums."""
        return self.minimum and not self.negated


def _fine_bits(form: IntegerFormat) -> tuple[int, int]:
    """Return the bits of a fine scale and minimum: a pair of the table in ``kernels/scales.cuh``."""
    if not form.coarse_size:
        return 0, 0
    if not form.has_minimum:
        return 8, 0
    return form.fine_bits, 8 if form.in_int8 else form.fine_bits


BOOKS = ((), INTEGER_FORMATS["iq4_nl"].book, INTEGER_FORMATS["mxfp4"].book)
"""The books of formats, by their numbers in ``kernels/book.cuh``; the first has codes that are integers."""

CLAIMED_FORMATS: tuple[Format, ...] = (
    *PLAIN_FORMATS,
    *(name for name, form in INTEGER_FORMATS.items() if not form.outliers),
)
"""Formats that the kernels decode: all but ``q8_wide``. Its outliers allow wider groups, which saves time
where integers are multiplied. Here weights are multiplied as float16, and ``q8``, which the core takes
instead, has fewer bits."""


class ScaleArgs(ctypes.Structure):
    """``struct ScaleArrays`` of ``kernels/scales.cuh``."""

    _fields_ = (
        ("scales", ctypes.c_void_p),
        ("minimums", ctypes.c_void_p),
        ("fine", ctypes.c_void_p),
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


class MatrixSize(msgspec.Struct, frozen=True):
    """The bytes of a matrix, or of a stack of matrices, on the device."""

    form: MatrixForm
    out: int
    """Rows of the matrix: elements of an output row."""
    width: int
    """Columns: elements of an input row."""
    members: int = 1
    """Matrices of a stack, one after the other."""

    @property
    def tiles(self) -> int:
        """Tiles of 16 rows of a member, the last one padded."""
        return -(-self.out // TILE)

    @property
    def all_tiles(self) -> int:
        """Tiles of all members."""
        return self.members * self.tiles

    @property
    def chunks(self) -> int:
        """Chunks of 64 columns in a tile, the last one padded."""
        return -(-self.width // CHUNK)

    @property
    def groups(self) -> int:
        """Groups of a row that have float16 scales."""
        columns = COARSE if self.form.scale_bits else self.form.group
        return -(-self.width // columns) if columns else 1

    def plane_bytes(self, bits: int) -> int:
        """Return the bytes of the array of the codes' low or high bits."""
        return self.all_tiles * self.chunks * TILE * CHUNK * bits // 8

    @property
    def scale_bytes(self) -> int:
        """Bytes of the float16 scales, and of the float16 minimums if there are any."""
        return 0 if self.form.bits == 16 else self.all_tiles * self.groups * TILE * 2

    @property
    def fine_bytes(self) -> int:
        """Bytes of the fine scales and minimums."""
        if not self.form.scale_bits:
            return 0
        groups = self.all_tiles * TILE * self.width // self.form.group
        return groups * (self.form.scale_bits + self.form.minimum_bits) // 8

    @property
    def num_bytes(self) -> int:
        """Bytes of everything."""
        scales = self.scale_bytes * (1 + self.form.has_own_minimums) + self.fine_bytes
        return self.plane_bytes(self.form.low_bits) + self.plane_bytes(self.form.high_bits) + scales


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
        )

    def moved(self, place: Callable[[Memory], Memory]) -> Self:
        """Return the matrix with each memory replaced by what ``place`` returns for it."""
        others = (self.high, self.scales, self.minimums, self.fine)
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
                _pointer(self.scales), _pointer(self.minimums), _pointer(self.fine), self.size.groups
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
    size = matrix.size
    _pack(runtime, matrix, number, data)
    for memory, scales in ((matrix.scales, data.scales), (matrix.minimums, data.minimums)):
        if memory is not None and scales is not None:
            at = number * (size.scale_bytes // size.members)
            runtime.upload(memory, at, arranged(scales.coarse, size))
    if matrix.fine is not None:
        at = number * (size.fine_bytes // size.members)
        runtime.upload(matrix.fine, at, arranged_fine(data, size))


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
    defines = form.defines | {"GROUP": 1, "MINIMUM": 0, "SCALE_BITS": 0, "MINIMUM_BITS": 0, "NEGATED": 0}
    if form.bits == 16:
        defines |= {"SOURCE": PLAIN_FORMATS.index(source)}
    return KernelSpec.of("pack", "pack", defines)


def _pointer(memory: Memory | None) -> int | None:
    return None if memory is None else memory.pointer
