"""What each KV dtype makes of keys and values, and what it gives back. All arrays end in ``[…, head_dim]`` or in what
stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KV_SCALE_GROUP, KVDtype
from llmd.builtin.reference.rotation import rotate

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Arrays = tuple[NDArray[np.generic], ...]
Item = TypeVar("Item", bound=np.generic)


class KVFormat(Protocol):
    """Rounds each token and head alone."""

    def encode(self, x: Float32) -> Arrays:
        """``[…, head_dim]`` → what is kept."""
        ...

    def decode(self, kept: Arrays, head_dim: int) -> Float64:
        """What is kept → ``[…, head_dim]``."""
        ...


class FloatKV:
    """Floats of NumPy's own, rounded to nearest even."""

    def __init__(self, dtype: type[np.floating]) -> None:
        self._dtype = dtype

    def encode(self, x: Float32) -> Arrays:
        return (x.astype(self._dtype),)

    def decode(self, kept: Arrays, head_dim: int) -> Float64:
        return kept[0].astype(np.float64)


class BFloatKV:
    """The upper 16 bits of float32, rounded to nearest even."""

    def encode(self, x: Float32) -> Arrays:
        bits = np.ascontiguousarray(x).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
        # Adding to the bits of a NaN could carry into its sign: it stays one by its highest bit of fraction.
        return (np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16),)

    def decode(self, kept: Arrays, head_dim: int) -> Float64:
        return (kept[0].astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Int8KV:
    """Symmetric int8 in groups of `KV_SCALE_GROUP` elements of a head.

    ``scale = float16(max|x| / 127)``, codes ``rint(x * (1 / scale))`` in -127…127, all in float32 with ties to even; zeros
    where the scale is 0. An element is ``code * scale``.
    """

    def encode(self, x: Float32) -> Arrays:
        grouped = _grouped(x)
        scales = (np.abs(grouped).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float16)
        codes = np.clip(_quotients(grouped, scales), -127, 127).astype(np.int8)
        return _ungrouped(codes, x.shape[-1]), scales[..., 0]

    def decode(self, kept: Arrays, head_dim: int) -> Float64:
        codes, scales = kept
        wide = _grouped(codes.astype(np.float64)) * scales.astype(np.float64)[..., None]
        return _ungrouped(wide, head_dim)


class Int4KV:
    """Codes in 0…15 of rotated heads, in groups of `KV_SCALE_GROUP` elements from a least one on.

    Of a group from l to h, `_INSETS` ranges are tried, each narrower by ``(h - l) / 64`` at both ends: ``least = float16`` of
    its lower end, ``scale = float16(range / 15)``, codes ``rint((x - least) * (1 / scale))``, all in float32 with ties to
    even. The first with the least sum of squared errors is kept. An element of the rotated head is ``least + code * scale``.
    """

    def encode(self, x: Float32) -> Arrays:
        grouped = _grouped(rotate(x))
        low, high = grouped.min(axis=-1, keepdims=True), grouped.max(axis=-1, keepdims=True)
        tried = [_round_range(grouped, low, high, np.float32(i / 64)) for i in range(_INSETS)]
        best = np.argmin(np.stack([errors for _, errors in tried]), axis=0)[None]
        codes, scales, leasts = (
            np.take_along_axis(np.stack(arrays), best, axis=0)[0]
            for arrays in zip(*(kept for kept, _ in tried), strict=True)
        )
        pairs = _ungrouped(codes, x.shape[-1] + x.shape[-1] % 2)
        return pairs[..., 0::2] | pairs[..., 1::2] << 4, scales[..., 0], leasts[..., 0]

    def decode(self, kept: Arrays, head_dim: int) -> Float64:
        pairs, scales, leasts = kept[0].astype(np.uint8), *kept[1:]
        codes = np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(*pairs.shape[:-1], -1)[..., :head_dim]
        wide = _grouped(codes.astype(np.float64)) * scales.astype(np.float64)[..., None]
        return rotate(_ungrouped(wide + leasts.astype(np.float64)[..., None], head_dim))


_INSETS = 5


def _round_range(
    grouped: Float32, low: Float32, high: Float32, inset: np.float32
) -> tuple[tuple[NDArray[np.uint8], NDArray[np.float16], NDArray[np.float16]], Float32]:
    """Codes, scales and least elements of groups over a range of theirs, and their squared errors ``[…, groups, 1]``."""
    cut = (high - low) * inset
    leasts = (low + cut).astype(np.float16)
    scales = ((high - low - 2 * cut) / np.float32(15)).astype(np.float16)
    wide = leasts.astype(np.float32)
    codes = np.clip(_quotients(grouped - wide, scales), 0, 15)
    squares = (codes * scales.astype(np.float32) + wide - grouped) ** 2
    while squares.shape[-1] > 1:
        half = squares.shape[-1] // 2
        squares = squares[..., :half] + squares[..., half:]
    return (codes.astype(np.uint8), scales, leasts), squares


def _quotients(grouped: Float32, scales: NDArray[np.float16]) -> Float32:
    """Elements divided by the scales ``[…, groups, 1]`` of their groups, rounded; zeros where a scale is 0."""
    wide = scales.astype(np.float32)
    inverse = np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide > 0)
    rounded: Float32 = np.rint(grouped * inverse)
    return rounded


def _grouped(x: NDArray[Item]) -> NDArray[Item]:
    """``[…, head_dim]`` → ``[…, groups, KV_SCALE_GROUP]``, a short last group filled with its last element."""
    missing = -x.shape[-1] % KV_SCALE_GROUP
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], mode="edge")
    return padded.reshape(*x.shape[:-1], -1, KV_SCALE_GROUP)


def _ungrouped(x: NDArray[Item], head_dim: int) -> NDArray[Item]:
    """The reverse of `_grouped`."""
    return x.reshape(*x.shape[:-2], -1)[..., :head_dim]


KV_FORMATS: Mapping[KVDtype, KVFormat] = {
    "f32": FloatKV(np.float32),
    "f16": FloatKV(np.float16),
    "bf16": BFloatKV(),
    "int8": Int8KV(),
    "int4": Int4KV(),
}
