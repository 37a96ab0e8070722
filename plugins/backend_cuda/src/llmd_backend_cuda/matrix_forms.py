"""What kernels are compiled for to multiply by a weight, and how many bytes it takes on the device."""

from __future__ import annotations

from typing import Self

import msgspec

from llmd.api import INTEGER_FORMATS, PLAIN_FORMATS, SCALED_FORMATS, SCALED_GROUPS, Format
from llmd.api.integer_formats import ROW_ACTIVATION_GROUP, IntegerFormat

TILE = 16
"""Weight rows of a tile."""

CHUNK = 64
"""Columns of a chunk."""

COARSE = 256
"""Columns that share a coarse scale."""


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
    fp8: bool = False
    """Whether codes are numbers of type e4m3fn, and sums of a row are multiplied by a float32 scale."""

    @classmethod
    def of(cls, name: Format, width: int) -> Self:
        """Return the form of a format in rows of ``width`` elements."""
        if name in PLAIN_FORMATS:
            return cls(16)
        if name in SCALED_FORMATS:
            return cls(8, SCALED_GROUPS[name], fp8=True)
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
            "FP8": int(self.fp8),
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
    def is_integer(self) -> bool:
        """Whether the format is an integer format."""
        return self.bits < 16 and not self.fp8

    @property
    def activation_group(self) -> int:
        """Columns of a row that share a scale, if rows are int8; 0 if the matrix is not in an integer format.

        It is `IntegerFormat.activation_group`.
        """
        if not self.is_integer:
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
    *SCALED_FORMATS,
    *(name for name, form in INTEGER_FORMATS.items() if not form.outliers),
)
"""Formats that the kernels decode: all but ``q8_wide``. Its outliers allow wider groups, which saves time
where integers are multiplied. Here weights are multiplied as float16, and ``q8``, which the core takes
instead, has fewer bits."""


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
    def row_scale_bytes(self) -> int:
        """Bytes of the float32 scales of rows."""
        return self.all_tiles * TILE * 4 if self.form.fp8 else 0

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
        scales = self.scale_bytes * (1 + self.form.has_own_minimums) + self.fine_bytes + self.row_scale_bytes
        return self.plane_bytes(self.form.low_bits) + self.plane_bytes(self.form.high_bits) + scales
