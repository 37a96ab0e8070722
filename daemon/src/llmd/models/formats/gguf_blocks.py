"""Decode the block types of GGUF files to integer groups, exactly.

A row is a sequence of blocks of 32 or 256 weights. A block is a sequence of fields: scales, and codes split
into bit planes. A plane of ``bits`` bits is a sequence of pieces of ``piece`` bytes; the lowest bits of a
piece's bytes belong to its first ``piece`` codes, the next bits to the next codes. docs/formats.md has the
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.tensors import Format, GroupScales, WeightData
from llmd.models.formats import gguf_scales
from llmd.models.formats.row_chunks import for_row_chunks

Bytes = NDArray[np.uint8]
Fields = Mapping[str, Bytes]
FineScales = tuple[NDArray[np.integer], Bytes | None]


class _Plane(msgspec.Struct, frozen=True):
    field: str
    bits: int
    piece: int


class _Layout(msgspec.Struct, frozen=True):
    """The layout of a block."""

    block_len: int
    """Weights per block."""
    fields: Mapping[str, int]
    """Names and sizes in bytes, in order."""
    planes: tuple[_Plane, ...]
    """Bits of the codes, from the lowest to the highest."""
    fine: Callable[[Fields], FineScales] | None = None
    """Reads fine scales and fine minimums from the fields."""
    sign: int = 0
    """Bit of a code that is inverted compared with INTEGER_FORMATS."""

    @property
    def num_bytes(self) -> int:
        return sum(self.fields.values())


_HALVES = _Plane("codes", 4, 16)
_FIFTH_BITS = _Plane("high", 1, 1)

_LAYOUTS: Mapping[Format, _Layout] = {
    "q4_0": _Layout(32, {"scale": 2, "codes": 16}, (_HALVES,)),
    "q4_1": _Layout(32, {"scale": 2, "minimum": 2, "codes": 16}, (_HALVES,)),
    "q5_0": _Layout(32, {"scale": 2, "high": 4, "codes": 16}, (_HALVES, _FIFTH_BITS)),
    "q5_1": _Layout(32, {"scale": 2, "minimum": 2, "high": 4, "codes": 16}, (_HALVES, _FIFTH_BITS)),
    "q8_0": _Layout(32, {"scale": 2, "codes": 32}, (_Plane("codes", 8, 32),), sign=0x80),
    "q2_k": _Layout(
        256,
        {"fine": 16, "codes": 64, "scale": 2, "minimum": 2},
        (_Plane("codes", 2, 32),),
        lambda fields: gguf_scales.with_minimums_of_4_bits(fields["fine"]),
    ),
    "q3_k": _Layout(
        256,
        {"high": 32, "codes": 64, "fine": 12, "scale": 2},
        (_Plane("codes", 2, 32), _Plane("high", 1, 32)),
        lambda fields: (gguf_scales.signed_of_6_bits(fields["fine"]), None),
    ),
    "q4_k": _Layout(
        256,
        {"scale": 2, "minimum": 2, "fine": 12, "codes": 128},
        (_Plane("codes", 4, 32),),
        lambda fields: gguf_scales.with_minimums_of_6_bits(fields["fine"]),
    ),
    "q5_k": _Layout(
        256,
        {"scale": 2, "minimum": 2, "fine": 12, "high": 32, "codes": 128},
        (_Plane("codes", 4, 32), _Plane("high", 1, 32)),
        lambda fields: gguf_scales.with_minimums_of_6_bits(fields["fine"]),
    ),
    "q6_k": _Layout(
        256,
        {"codes": 128, "high": 64, "fine": 16, "scale": 2},
        (_Plane("codes", 4, 64), _Plane("high", 2, 32)),
        lambda fields: (fields["fine"].view(np.int8), None),
    ),
    "iq4_nl": _Layout(32, {"scale": 2, "codes": 16}, (_HALVES,)),
    "iq4_xs": _Layout(
        256,
        {"scale": 2, "fine_high": 2, "fine": 4, "codes": 128},
        (_HALVES,),
        lambda fields: (gguf_scales.signed_of_split_bits(fields["fine"], fields["fine_high"]), None),
    ),
    "mxfp4": _Layout(32, {"exponent": 1, "codes": 16}, (_HALVES,)),
}

BLOCK_FORMATS: tuple[Format, ...] = tuple(_LAYOUTS)
"""The block formats of GGUF files."""


def block_bytes(format: Format, row_len: int) -> int:  # noqa: A002 - the word of the field
    """Return the bytes of a row of ``row_len`` weights in a file.

    Raises:
        ValueError: the row is not a whole number of blocks.
    """
    layout = _LAYOUTS[format]
    if row_len % layout.block_len:
        raise ValueError(f"rows of {row_len} weights are not whole blocks of {layout.block_len}")
    return row_len // layout.block_len * layout.num_bytes


def decode(format: Format, blocks: Bytes, row_len: int) -> WeightData:  # noqa: A002 - the word of the field
    """Decode rows of blocks, uint8 ``[rows, block_bytes(format, row_len)]``. Non-finite scales are kept."""
    layout = _LAYOUTS[format]
    num_rows = len(blocks)
    codes = np.empty((num_rows, row_len), np.uint8)
    split = blocks.reshape(num_rows, row_len // layout.block_len, layout.num_bytes)

    def of_rows(rows: slice) -> None:
        codes[rows] = _codes(layout, _fields(layout, split[rows])).reshape(-1, row_len)

    for_row_chunks(num_rows, row_len, of_rows)
    scales, minimums = _scales(layout, _fields(layout, split))
    return WeightData(format, codes, scales, minimums, INTEGER_FORMATS[format].group_size)


def set_coarse_scales(
    format: Format,  # noqa: A002 - the word of the field
    blocks: Bytes,
    scales: GroupScales,
    minimums: GroupScales | None,
) -> None:
    """Write coarse scales and minimums ``[rows, blocks of a row]``, as `decode` returns them, into blocks."""
    layout = _LAYOUTS[format]
    fields = _fields(layout, blocks.reshape(len(blocks), -1, layout.num_bytes))  # views
    if "exponent" in fields:
        fields["exponent"][..., 0] = np.log2(scales.coarse) + 128
        return
    fields["scale"][...] = scales.coarse[..., None].view(np.uint8)
    if minimums is not None:
        coarse = minimums.coarse if layout.fine is None else -minimums.coarse
        fields["minimum"][...] = coarse[..., None].view(np.uint8)


def _fields(layout: _Layout, blocks: Bytes) -> Fields:
    ends = np.cumsum(list(layout.fields.values()))
    return dict(zip(layout.fields, np.split(blocks, ends[:-1], axis=-1), strict=True))


def _codes(layout: _Layout, fields: Fields) -> Bytes:
    """Return the codes, ``[rows, blocks, block_len]``."""
    lowest, *others = layout.planes
    codes, place = _bits(fields[lowest.field], lowest), lowest.bits
    for plane in others:
        codes |= _bits(fields[plane.field], plane) << np.uint8(place)
        place += plane.bits
    codes ^= np.uint8(layout.sign)
    return codes


def _bits(packed: Bytes, plane: _Plane) -> Bytes:
    """Return the bits of a plane, in the order of the codes."""
    pieces = packed.reshape(*packed.shape[:-1], -1, 1, plane.piece)
    bits = pieces >> np.arange(0, 8, plane.bits, dtype=np.uint8)[:, None]
    bits &= np.uint8((1 << plane.bits) - 1)
    return bits.reshape(*packed.shape[:-1], -1)


def _scales(layout: _Layout, fields: Fields) -> tuple[GroupScales, GroupScales | None]:
    """Return scales, and minimums if the blocks have any. Fine minimums are subtracted, others added."""
    if "exponent" in fields:
        return GroupScales(gguf_scales.powers_of_two(fields["exponent"][..., 0])), None
    scale = _float16(fields["scale"])
    fine, fine_minimum = (None, None) if layout.fine is None else map(_by_row, layout.fine(fields))
    if "minimum" not in fields:
        return GroupScales(scale, fine), None
    minimum = _float16(fields["minimum"])
    return GroupScales(scale, fine), GroupScales(minimum if fine is None else -minimum, fine_minimum)


def _float16(field: Bytes) -> NDArray[np.float16]:
    return np.ascontiguousarray(field).view(np.float16)[..., 0]


def _by_row(fine: NDArray[np.integer] | None) -> NDArray[np.integer] | None:
    """Reshape ``[rows, blocks, groups]`` to ``[rows, all groups]``."""
    if fine is None:
        return None
    # For rows of one block, `reshape` alone would return a view of the blocks, which is not contiguous.
    return np.ascontiguousarray(fine).reshape(fine.shape[0], fine.shape[1] * fine.shape[2])
