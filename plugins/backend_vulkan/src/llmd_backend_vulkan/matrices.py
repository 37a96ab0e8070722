"""Weights that rows are multiplied by or looked up in, in the layout of ``shaders/matrix.glsl``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, PLAIN_FORMATS, SCALED_FORMATS, Format, WeightData
from llmd_backend_vulkan.commands import Words
from llmd_backend_vulkan.memory import ALIGNMENT, Arena, Region, as_words
from llmd_backend_vulkan.tiles import Tile

CLAIMED_FORMATS: tuple[Format, ...] = (*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS)
"""Formats that the shaders decode: all."""

_PLAIN_BITS = {"f16": 16, "bf16": 17, "f32": 32}
_CHUNK_BITS = 128
_UPLOADED_WORDS = 4 << 20
"""Words of the members of a stack that are copied at once: each copy waits for the device."""
_NO_SCALES, _HALVES, _PAIRS, _FLOATS, _FINE, _FINE_PAIRS = range(6)
_INTEGERS, _INDICES, _E4M3 = range(3)


class MatrixForm(msgspec.Struct, frozen=True):
    """What shaders are specialised for: the constants of ``matrix.glsl``."""

    bits: int
    """Bits of a code; 16, 17 and 32 for plain formats."""
    scales: int = _NO_SCALES
    """How scales are stored."""
    group: int = 0
    """Columns that share a scale; 0: the row."""
    zero: int = 0
    """Subtracted from codes."""
    signed: int = 0
    """Bit 0: fine scales are int8; bit 1: so are fine minimums."""
    book: tuple[int, ...] = ()
    """16 int8 values that codes index."""
    has_outliers: bool = False
    is_e4m3: bool = False
    """Whether codes are numbers of type e4m3fn."""

    @property
    def constants(self) -> tuple[int, ...]:
        """In order of their ids."""
        words = np.array(self.book or (0,) * 16, np.int8).view(np.uint32).tolist()
        codes = _E4M3 if self.is_e4m3 else _INDICES if self.book else _INTEGERS
        numbers = (self.bits, self.scales, self.group, self.zero, self.signed, codes)
        return (*numbers, *words, int(self.has_outliers))

    @property
    def has_scales(self) -> bool:
        """Whether codes are multiplied by scales."""
        return self.scales != _NO_SCALES

    @property
    def has_minimums(self) -> bool:
        """Whether something is added to codes times scales."""
        return self.scales in (_PAIRS, _FINE_PAIRS)

    @property
    def low(self) -> int:
        """Bits of a code, or of an element, in the first array."""
        return {3: 2, 5: 4, 6: 4, 17: 16}.get(self.bits, self.bits)

    @property
    def high(self) -> int:
        """Bits of a code in the second array."""
        return 0 if self.bits > 8 else self.bits - self.low

    @property
    def chunk(self) -> int:
        """Columns of a chunk."""
        return _CHUNK_BITS // self.low


class Piece(msgspec.Struct, frozen=True):
    """Some rows of a matrix in device memory, or of members of a stack: all rows of some, or some of one.

    All places are words of the region's buffer.
    """

    region: Region
    first_member: int
    num_members: int
    first: int
    """Its first row in the matrix, or in each member."""
    num_rows: int
    """Its rows of the matrix, or of each member."""
    low_at: int
    high_at: int
    scales_at: int
    row_scales: int
    """Words of the scales of a row."""
    coarse_at: int
    row_coarse: int
    """Words of the coarse scales of a row."""
    outliers_at: int


class DeviceMatrix(msgspec.Struct, frozen=True):
    """A matrix ``[height, width]`` in device memory, or a stack of them, in pieces that fit in a buffer."""

    form: MatrixForm
    height: int
    """Rows of the matrix, or of a member."""
    width: int
    pieces: tuple[Piece, ...]
    tiles: Mapping[int, Tile] = msgspec.field(default_factory=dict)
    """The fastest tile for each of `llmd_backend_vulkan.tiles.MEASURED_ROWS` that was measured."""

    @property
    def row_words(self) -> int:
        """Words of the elements, or lower bits, of a row."""
        return -(-self.width // self.form.chunk) * (_CHUNK_BITS // 32)

    @property
    def num_bytes(self) -> int:
        """Bytes of the pieces."""
        return sum(4 * piece.region.num_words for piece in self.pieces)


def form_of(data: WeightData) -> MatrixForm:
    """Return how a weight is stored on the device."""
    if data.scales is None:
        return MatrixForm(_PLAIN_BITS[data.format])
    if data.format in SCALED_FORMATS:
        has_groups = data.scales.coarse.shape[1] > 1
        return MatrixForm(8, _FLOATS, data.group_size if has_groups else 0, is_e4m3=True)
    form = INTEGER_FORMATS[data.format]
    has_fine = data.scales.fine is not None
    if has_fine:
        scales = _FINE if data.minimums is None else _FINE_PAIRS
    elif data.scales.coarse.dtype == np.float32:
        scales = _FLOATS
    else:
        scales = _HALVES if data.minimums is None else _PAIRS
    parts = [None if one is None else one.fine for one in (data.scales, data.minimums)]
    signed = sum(1 << bit for bit, fine in enumerate(parts) if fine is not None and fine.dtype == np.int8)
    whole_row = form.group_size == 0
    group = 0 if whole_row else data.group_size
    return MatrixForm(form.bits, scales, group, form.zero, signed, form.book, data.outliers is not None)


def load_matrix(arena: Arena, data: WeightData) -> DeviceMatrix:
    """Arrange a weight and copy it to the device.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """
    return load_stack(arena, 1, lambda _: data)


def load_stack(arena: Arena, members: int, read: Callable[[int], WeightData]) -> DeviceMatrix:
    """Arrange the members of a stack one after the other, and copy them to the device.

    ``read`` returns a member; all have the same shape and format.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """
    data = read(0)
    form, (height, width) = form_of(data), data.data.shape
    row_words = [part.size for part in _arrays(form, data.rows(slice(0, 1)))]
    fitting = max(1, (arena.runtime.most_words - 8 * ALIGNMENT) // max(1, sum(row_words)))
    at_once = max(1, _UPLOADED_WORDS // max(1, sum(row_words) * height))
    pieces: list[Piece] = []
    for of_piece in _cut(members, max(1, fitting // max(height, 1))):
        own = [_take_piece(arena, row_words, of_piece, rows) for rows in _cut(height, fitting)]
        for first, count in _cut(of_piece[1], at_once):
            numbers = range(of_piece[0] + first, of_piece[0] + first + count)
            uploaded = [data if number == 0 else read(number) for number in numbers]
            for piece in own:
                _upload(arena, form, piece, first, uploaded)
        pieces += own
    return DeviceMatrix(form, height, width, tuple(pieces))


def _cut(count: int, most: int) -> list[tuple[int, int]]:
    """Cut a range into parts of at most ``most``; return the first number and the length of each."""
    return [(first, min(most, count - first)) for first in range(0, count, most)]


def moved(matrix: DeviceMatrix, regions: Sequence[Region]) -> DeviceMatrix:
    """Return a matrix whose pieces are in other regions, in the same layout."""
    return msgspec.structs.replace(
        matrix, pieces=tuple(_moved(*pair) for pair in zip(matrix.pieces, regions, strict=True))
    )


def _moved(piece: Piece, region: Region) -> Piece:
    by = region.at - piece.region.at
    return msgspec.structs.replace(
        piece,
        region=region,
        low_at=piece.low_at + by,
        high_at=piece.high_at + by,
        scales_at=piece.scales_at + by,
        coarse_at=piece.coarse_at + by,
        outliers_at=piece.outliers_at + by,
    )


def _take_piece(
    arena: Arena, row_words: Sequence[int], members: tuple[int, int], rows: tuple[int, int]
) -> Piece:
    """Take the memory of a piece; ``row_words`` are the words of each array of a row (`_arrays`)."""
    (first_member, num_members), (first, num_rows) = members, rows
    places, end = [], 0
    for words in row_words:
        places.append(end)
        end += -(-words * num_rows * num_members // 4) * 4
    region = arena.take(end)
    low, high, scales, coarse, outliers = (region.at + at for at in places)
    of_scales, of_coarse = row_words[2:4]
    return Piece(
        region, first_member, num_members, first, num_rows, low, high, scales, of_scales, coarse, of_coarse, outliers
    )  # fmt: skip


def _upload(arena: Arena, form: MatrixForm, piece: Piece, first: int, members: Sequence[WeightData]) -> None:
    """Copy the rows of some members to the piece; the first of them is number ``first`` of the piece."""
    rows = slice(piece.first, piece.first + piece.num_rows)
    places = (piece.low_at, piece.high_at, piece.scales_at, piece.coarse_at, piece.outliers_at)
    arrays = zip(*(_arrays(form, data.rows(rows)) for data in members), strict=True)
    for at, of_members in zip(places, arrays, strict=True):
        if words := of_members[0].size:
            in_piece = at - piece.region.at + first * words
            arena.upload(piece.region, in_piece, np.concatenate(of_members))


def _arrays(form: MatrixForm, data: WeightData) -> tuple[Words, Words, Words, Words, Words]:
    """Return low bits, high bits, scales, coarse scales and outliers of rows, in words."""
    empty = np.zeros(0, np.uint32)
    if data.scales is None:
        return _elements(form, data.data), empty, empty, empty, empty
    codes = _padded(data.data, form.chunk).view(np.uint8)
    low = packed(codes & np.uint8((1 << form.low) - 1), form.low)
    high = packed(codes >> np.uint8(form.low), form.high) if form.high else empty
    scales, coarse = _scales(form, data)
    return low, high, scales, coarse, _outliers(data)


def _elements(form: MatrixForm, values: NDArray[np.generic]) -> Words:
    return as_words(_padded(values, form.chunk))


def _padded(values: NDArray[np.generic], multiple: int) -> NDArray[np.generic]:
    """Return a matrix with zeros to the right, up to a multiple of columns."""
    missing = -values.shape[1] % multiple
    return np.pad(values, ((0, 0), (0, missing))) if missing else np.ascontiguousarray(values)


def packed(codes: NDArray[np.generic], bits: int) -> Words:
    """Pack codes of 1, 2, 4 or 8 bits, uint8 ``[rows, n]``, into words from the lowest bits on."""
    octets = codes.view(np.uint8)
    for size in (1, 2, 4):
        if bits <= size:
            octets = octets[:, ::2] | octets[:, 1::2] << np.uint8(size)
    return as_words(octets)


def _scales(form: MatrixForm, data: WeightData) -> tuple[Words, Words]:
    scales, minimums = data.scales, data.minimums
    assert scales is not None, "checked by the caller"
    empty = np.zeros(0, np.uint32)
    if form.scales == _FLOATS:
        return as_words(scales.coarse.astype(np.float32)), empty
    coarse = scales.coarse.astype(np.float16)
    least = np.zeros_like(coarse) if minimums is None else minimums.coarse.astype(np.float16)
    pairs = as_words(np.stack([coarse, least], axis=-1))
    if form.scales == _HALVES:
        return as_words(_padded(coarse, 2)), empty
    if form.scales == _PAIRS:
        return pairs, empty
    fine = _octets(scales.fine)
    if form.scales == _FINE:
        return as_words(_padded(fine, 4)), pairs
    of_minimums = _octets(None if minimums is None else minimums.fine)
    return as_words(_padded(np.stack([fine, of_minimums], axis=-1).reshape(len(fine), -1), 4)), pairs


def _octets(fine: NDArray[np.integer] | None) -> NDArray[np.uint8]:
    assert fine is not None, "both levels or neither have fine values"
    return np.ascontiguousarray(fine).view(np.uint8)


def _outliers(data: WeightData) -> Words:
    """Return four columns and four residuals of each group, in two words."""
    if data.outliers is None:
        return np.zeros(0, np.uint32)
    arrays: Sequence[NDArray[np.generic]] = (data.outliers.columns, data.outliers.residuals)
    octets = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
    return as_words(np.stack(octets, axis=2))
