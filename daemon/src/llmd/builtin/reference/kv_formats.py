"""What each KV dtype makes of keys and values, and what it gives back. All arrays end in ``[…, head_dim]`` or in what
stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import INT8_KV_GROUP, KVDtype

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Arrays = tuple[NDArray[np.generic], ...]
Item = TypeVar("Item", bound=np.generic)


class KVFormat(Protocol):
    """Rounds each token and head alone."""

    def encode(self, x: Float32) -> Arrays:
        """``[…, head_dim]`` → what is kept."""
        ...

    def decode(self, kept: Arrays) -> Float64:
        """What is kept → ``[…, head_dim]``."""
        ...


class FloatKV:
    """Floats of NumPy's own, rounded to nearest even."""

    def __init__(self, dtype: type[np.floating]) -> None:
        self._dtype = dtype

    def encode(self, x: Float32) -> Arrays:
        return (x.astype(self._dtype),)

    def decode(self, kept: Arrays) -> Float64:
        return kept[0].astype(np.float64)


class BFloatKV:
    """The upper 16 bits of float32, rounded to nearest even."""

    def encode(self, x: Float32) -> Arrays:
        bits = np.ascontiguousarray(x).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
        # Adding to the bits of a NaN could carry into its sign: it stays one by its highest bit of fraction.
        return (np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16),)

    def decode(self, kept: Arrays) -> Float64:
        return (kept[0].astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Int8KV:
    """Symmetric int8 in groups of `INT8_KV_GROUP` elements of a head.

    ``scale = float16(max|x| / 127)``, codes ``rint(x * (1 / scale))`` in -127…127, all in float32 with ties to even; zeros
    where the scale is 0. An element is ``code * scale``.
    """

    def encode(self, x: Float32) -> Arrays:
        grouped = _grouped(x)
        scales = (np.abs(grouped).max(axis=-1) / np.float32(127)).astype(np.float16)
        wide = scales.astype(np.float32)
        inverse = np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide > 0)
        codes = np.clip(np.rint(grouped * inverse[..., None]), -127, 127).astype(np.int8)
        return codes.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]], scales

    def decode(self, kept: Arrays) -> Float64:
        codes, scales = kept
        wide = _grouped(codes.astype(np.float64)) * scales.astype(np.float64)[..., None]
        return wide.reshape(*codes.shape[:-1], -1)[..., : codes.shape[-1]]


def _grouped(x: NDArray[Item]) -> NDArray[Item]:
    """``[…, head_dim]`` → ``[…, groups, INT8_KV_GROUP]``, a short last group filled with zeros."""
    missing = -x.shape[-1] % INT8_KV_GROUP
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return padded.reshape(*x.shape[:-1], -1, INT8_KV_GROUP)


KV_FORMATS: Mapping[KVDtype, KVFormat] = {
    "f32": FloatKV(np.float32),
    "f16": FloatKV(np.float16),
    "bf16": BFloatKV(),
    "int8": Int8KV(),
}
