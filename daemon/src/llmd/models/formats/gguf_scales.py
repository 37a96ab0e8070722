"""Unpack the fine scales of GGUF blocks: ``[..., bytes]`` to int8 or uint8 ``[..., groups]``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def with_minimums_of_6_bits(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Unpack ``q4_k`` and ``q5_k``: 8 scales and 8 minimums in 12 bytes.

    Bytes 0-3 hold scales 0-3 in their lower 6 bits, bytes 4-7 hold minimums 0-3. The lower 4 bits of scale
    and minimum ``4 + i`` are the halves of byte ``8 + i``; their upper 2 bits are the top bits of bytes ``i``
    and ``4 + i``.
    """
    first, second, last = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]
    scales: Bytes = np.concatenate((first & 0x3F, _joined(last & 0x0F, first >> 6)), axis=-1)
    minimums: Bytes = np.concatenate((second & 0x3F, _joined(last >> 4, second >> 6)), axis=-1)
    return scales, minimums


def with_minimums_of_4_bits(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Unpack ``q2_k``: 16 scales in the lower halves of 16 bytes, 16 minimums in the upper halves."""
    return packed & np.uint8(0x0F), packed >> np.uint8(4)


def signed_of_6_bits(packed: Bytes) -> NDArray[np.int8]:
    """Unpack ``q3_k``: 16 scales in 12 bytes, stored with 32 added.

    Lower 4 bits: scale ``i`` is a half of byte ``i % 8``. Upper 2 bits: scale ``4·j + i`` is pair j of byte
    ``8 + i``.
    """
    halves, pairs = packed[..., 0:8], packed[..., 8:12]
    low: Bytes = np.concatenate((halves & 0x0F, halves >> 4), axis=-1)
    high: Bytes = np.concatenate([pairs >> shift & 0x03 for shift in (0, 2, 4, 6)], axis=-1)
    return _joined_less_32(low, high)


def signed_of_split_bits(low: Bytes, high: Bytes) -> NDArray[np.int8]:
    """Unpack ``iq4_xs``: lower 4 bits of 8 scales in 4 bytes, upper 2 in 2 bytes; stored with 32 added."""
    halves: Bytes = np.stack((low & 0x0F, low >> 4), axis=-1).reshape(*low.shape[:-1], 8)
    pairs: Bytes = np.stack([high >> shift & 0x03 for shift in (0, 2, 4, 6)], axis=-1).reshape(halves.shape)
    return _joined_less_32(halves, pairs)


def powers_of_two(exponents: Bytes) -> NDArray[np.float32]:
    """Unpack ``mxfp4``: ``2 ** (e - 128)``, half of an E8M0 scale, as the codebook has doubled values."""
    return np.ldexp(np.float32(1), exponents.astype(np.int32) - 128)


def _joined(low: NDArray[np.integer], high: NDArray[np.integer]) -> Bytes:
    """Join the lower 4 bits and the bits above them."""
    return (low | high << 4).astype(np.uint8, copy=False)


def _joined_less_32(low: NDArray[np.integer], high: NDArray[np.integer]) -> NDArray[np.int8]:
    return (_joined(low, high) - np.uint8(32)).view(np.int8)
