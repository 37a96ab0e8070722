"""Encode and decode keys and values for each KV dtype.

The last axes of all arrays are ``[…, tokens, heads, head_dim]``, or an encoded form of ``head_dim``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KV_BOOK, KV_SCALE_GROUP, KVDtype
from llmd.builtin.reference.rotation import rotate

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Positions = NDArray[np.integer]  # [tokens]
Arrays = tuple[NDArray[np.generic], ...]
Item = TypeVar("Item", bound=np.generic)


class KVFormat(Protocol):
    """Encodes each token and head independently."""

    def encode(self, x: Float32, positions: Positions) -> Arrays:
        """Encode ``[…, tokens, heads, head_dim]`` into the stored arrays."""
        ...

    def decode(self, kept: Arrays, head_dim: int, positions: Positions) -> Float64:
        """Decode the stored arrays."""
        ...


class FloatKV:
    """A float type of NumPy, rounded to nearest even."""

    def __init__(self, dtype: type[np.floating]) -> None:
        self._dtype = dtype

    def encode(self, x: Float32, positions: Positions) -> Arrays:
        return (x.astype(self._dtype),)

    def decode(self, kept: Arrays, head_dim: int, positions: Positions) -> Float64:
        return kept[0].astype(np.float64)


class BFloatKV:
    """The upper 16 bits of float32, rounded to nearest even."""

    def encode(self, x: Float32, positions: Positions) -> Arrays:
        bits = np.ascontiguousarray(x).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
        # Rounding the bits of a NaN could carry into its sign: set the highest fraction bit instead.
        return (np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16),)

    def decode(self, kept: Arrays, head_dim: int, positions: Positions) -> Float64:
        return (kept[0].astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Int8KV:
    """Symmetric int8 in groups of `KV_SCALE_GROUP` elements of a head.

    ``scale = float16(max|x| / 127)``, codes ``rint(x * (1 / scale))`` in -127…127, all in float32 with ties
    to even; codes are 0 if the scale is 0. An element decodes to ``code * scale``.
    """

    def encode(self, x: Float32, positions: Positions) -> Arrays:
        grouped = _grouped(x)
        scales = (np.abs(grouped).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float16)
        codes = np.clip(_quotients(grouped, scales.astype(np.float32)), -127, 127).astype(np.int8)
        return _ungrouped(codes, x.shape[-1]), scales[..., 0]

    def decode(self, kept: Arrays, head_dim: int, positions: Positions) -> Float64:
        codes, scales = kept
        wide = _grouped(codes.astype(np.float64)) * scales.astype(np.float64)[..., None]
        return _ungrouped(wide, head_dim)


class Int4KV:
    """Codes of `KV_BOOK` for rotated heads, negated at odd positions, in groups of `KV_SCALE_GROUP` elements.

    Codes have 5 bits. In each of `_QUADS` the lowest bits of the codes have an even sum, so the last of these
    bits is not stored: codes are points of the lattice D4. A scale has 8 bits, those below the sign of a
    half-precision number.

    `_SCALES_TRIED` scales are tried in ascending order, from the one nearest to the scale at which the
    outermost levels cover the whole group. Elements are rounded to ``rint(x * (64 / scale))``, in float32
    with ties to even, and then to the nearest level, the lower one in a tie. If the sum of a quad's bits is
    odd, one element moves to the nearer of its two neighbouring levels: the first one for which this adds the
    least error. The first scale with the least sum of squared errors is used. An element of the rotated head
    decodes to ``level / 64 * scale``.

    Source of the lattice rounding: Conway & Sloane 1982, "Fast Quantizing and Decoding Algorithms for Lattice
    Quantizers and Codes".
    """

    def encode(self, x: Float32, positions: Positions) -> Arrays:
        grouped = _grouped(rotate(x) * _signs(positions))
        above = grouped.max(axis=-1, keepdims=True) / np.float32(KV_BOOK[-1])
        below = grouped.min(axis=-1, keepdims=True) / np.float32(KV_BOOK[0])
        widest = (np.maximum(above, below) * np.float32(_UNIT)).astype(np.float16).view(np.uint16) & 0x7FFF
        least = widest + 64 >> 7
        tried = [_round_to_book(grouped, (least + i).astype(np.uint8)) for i in range(_SCALES_TRIED)]
        best = np.argmin(np.stack([squares for *_, squares in tried]), axis=0)[None]
        codes, scales = (
            np.take_along_axis(np.stack(arrays), best, axis=0)[0]
            for arrays in zip(*(kept for *kept, _ in tried), strict=True)
        )
        low = codes & 1
        bits = np.concatenate((low[..., :16], low[..., 16::2]), axis=-1)
        halves = _ungrouped(codes >> 1, x.shape[-1] + x.shape[-1] % 2)
        return halves[..., 0::2] | halves[..., 1::2] << 4, np.packbits(bits, axis=-1), scales[..., 0]

    def decode(self, kept: Arrays, head_dim: int, positions: Positions) -> Float64:
        pairs, packed, scales = (array.astype(np.uint8) for array in kept)
        halves = np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(*pairs.shape[:-1], -1)[..., :head_dim]
        bits = np.unpackbits(packed, axis=-1)
        low = np.empty((*bits.shape[:-1], KV_SCALE_GROUP), np.uint8)
        low[..., :16], low[..., 16::2] = bits[..., :16], bits[..., 16:]
        low[..., 17::2] = low[..., 16::2] ^ low[..., 0:16:2] ^ low[..., 1:16:2]  # even sums
        levels = _BOOK[_grouped(halves) << 1 | low] / _UNIT
        wide = _ungrouped(levels * _wide(scales).astype(np.float64)[..., None], head_dim)
        return rotate(wide * _signs(positions))


_SCALES_TRIED = 3
_UNIT = 64
_BOOK = np.array(KV_BOOK)
_QUADS = np.array([[e, e + 1, e + 16, e + 17] for e in range(0, 16, 2)])
_REACH = 255  # in units of levels: elements are clipped to this


def _signs(positions: Positions) -> Float32:
    """Return a sign for each position, ``[…, tokens, 1, 1]``.

    Levels are not symmetric, so equal heads at an odd and an even position get different errors.
    """
    return (1 - 2 * (positions % 2)).astype(np.float32)[..., None, None]


def _wide(scales: NDArray[np.uint8]) -> Float32:
    return (scales.astype(np.uint16) << 7).view(np.float16).astype(np.float32)


def _nearest() -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Return tables for -`_REACH`…`_REACH`.

    They hold the nearest code, the nearer of its two neighbours, the squared error of the code, and how much
    squared error the neighbour adds.
    """
    x = np.arange(-_REACH, _REACH + 1)
    squares = (x[:, None] - _BOOK) ** 2
    codes = squares.argmin(axis=1)
    neighbours = np.pad(squares, ((0, 0), (1, 1)), constant_values=1 << 20)
    up = neighbours[x + _REACH, codes + 2] < neighbours[x + _REACH, codes]
    others = np.where(up, codes + 1, codes - 1)
    least = squares[x + _REACH, codes]
    detours = squares[x + _REACH, others] - least
    return codes.astype(np.uint8), others.astype(np.uint8), least.astype(np.int32), detours.astype(np.int32)


_CODES, _OTHERS, _SQUARES, _DETOURS = _nearest()


def _round_to_book(
    grouped: Float32, scales: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Float32]:
    """Return the codes of groups, and their scales and squared errors, both ``[…, groups, 1]``."""
    wide = _wide(scales)
    # NaN gets an arbitrary code; its scale is not a number either.
    x = np.nan_to_num(np.clip(_quotients(grouped, wide / np.float32(_UNIT)), -_REACH, _REACH), nan=_REACH)
    at = x.astype(np.intp) + _REACH
    codes, detours = _CODES[at], _DETOURS[at][..., _QUADS]
    odd = (codes[..., _QUADS] & 1).sum(axis=-1) % 2 == 1
    changed = _QUADS[np.arange(len(_QUADS)), detours.argmin(axis=-1)]
    others = np.take_along_axis(_OTHERS[at], changed, axis=-1)
    kept = np.take_along_axis(codes, changed, axis=-1)
    np.put_along_axis(codes, changed, np.where(odd, others, kept), axis=-1)
    squares = _SQUARES[at].sum(axis=-1) + (detours.min(axis=-1) * odd).sum(axis=-1)
    return codes, scales, squares[..., None].astype(np.float32) * wide * wide


def _quotients(grouped: Float32, scales: Float32) -> Float32:
    """Return elements divided by their scales ``[…, groups, 1]``, rounded; zeros if a scale is 0."""
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    rounded: Float32 = np.rint(grouped * inverse)
    return rounded


def _grouped(x: NDArray[Item]) -> NDArray[Item]:
    """Reshape ``[…, head_dim]`` to ``[…, groups, KV_SCALE_GROUP]``; pad a group with its last element."""
    missing = -x.shape[-1] % KV_SCALE_GROUP
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], mode="edge")
    return padded.reshape(*x.shape[:-1], -1, KV_SCALE_GROUP)


def _ungrouped(x: NDArray[Item], head_dim: int) -> NDArray[Item]:
    """Undo `_grouped`."""
    return x.reshape(*x.shape[:-2], -1)[..., :head_dim]


KV_FORMATS: Mapping[KVDtype, KVFormat] = {
    "f32": FloatKV(np.float32),
    "f16": FloatKV(np.float16),
    "bf16": BFloatKV(),
    "int8": Int8KV(),
    "int4": Int4KV(),
}
