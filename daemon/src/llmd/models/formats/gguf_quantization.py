"""Quantise plain weights to the GGUF block types for which GGML defines how each weight is rounded.

A block has 32 weights. Scale and minimum follow from its largest and smallest weight, without a search.

Source: ``quantize_row_q8_0_ref`` and similar functions in ggml-quants.c of github.com/ggml-org/ggml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import Format
from llmd.models.formats.float16 import check_weights, to_float16
from llmd.models.formats.gguf_blocks import block_bytes
from llmd.models.formats.row_chunks import for_row_chunks
from llmd.models.plain_formats import Float32, to_float32

BLOCK_LEN = 32

Bytes = NDArray[np.uint8]


def quantize_to_blocks(weights: NDArray[np.generic], stored: Format, target: Format) -> Bytes:
    """Quantise a plain weight ``[out, in]``, stored as ``stored``, to uint8 ``[out, block_bytes(target,
    in)]``.

    Raises:
        ArithmeticError: a weight is not finite, or a scale or minimum is outside the range of float16.
    """
    num_rows, row_len = weights.shape
    rows = np.empty((num_rows, block_bytes(target, row_len)), np.uint8)
    encode = QUANTIZERS[target]

    def of_rows(chunk: slice) -> None:
        values = to_float32(weights[chunk], stored)
        check_weights(values)
        rows[chunk] = encode(values.reshape(-1, BLOCK_LEN)).reshape(len(values), -1)

    for_row_chunks(num_rows, row_len, of_rows)
    return rows


def _q8_0(blocks: Float32) -> Bytes:
    """Quantise to integers -127 … 127; ties are rounded away from zero."""
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * _inverse(scale)
    magnitude = np.abs(scaled)
    floor = np.floor(magnitude)
    rounded = np.copysign(floor + (magnitude - floor >= np.float32(0.5)), scaled)
    return np.concatenate([_float16(scale), rounded.astype(np.int8).view(np.uint8)], axis=1)


def _around_zero(blocks: Float32, bits: int) -> Bytes:
    """Quantise to ``scale * (code - 2**(bits - 1))``; the weight farthest from zero gets the code 0."""
    farthest = np.abs(blocks).argmax(axis=1, keepdims=True)
    middle = 1 << bits - 1
    scale = np.take_along_axis(blocks, farthest, axis=1) / np.float32(-middle)
    codes = _codes(blocks * _inverse(scale) + np.float32(middle + 0.5), bits)
    return np.concatenate([_float16(scale), *_packed(codes, bits)], axis=1)


def _above_minimum(blocks: Float32, bits: int) -> Bytes:
    """Quantise to ``scale * code + minimum``."""
    minimum = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - minimum) / np.float32((1 << bits) - 1)
    codes = _codes((blocks - minimum) * _inverse(scale) + np.float32(0.5), bits)
    return np.concatenate([_float16(scale), _float16(minimum), *_packed(codes, bits)], axis=1)


def _inverse(scale: Float32) -> Float32:
    """Return ``1 / scale``, or 0 if the scale is 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(scale == 0, np.float32(0), np.float32(1) / scale)


def _codes(values: Float32, bits: int) -> Bytes:
    return np.trunc(values).astype(np.uint8).clip(0, (1 << bits) - 1)


def _packed(codes: Bytes, bits: int) -> list[Bytes]:
    """Pack the fifth bits of all codes, if there are any, then the lower four bits of two codes per byte."""
    low = codes & np.uint8(15)
    fifth = [np.packbits(codes >> np.uint8(4), axis=1, bitorder="little")] if bits == 5 else []
    return [*fifth, low[:, : BLOCK_LEN // 2] | low[:, BLOCK_LEN // 2 :] << np.uint8(4)]


def _float16(values: Float32) -> Bytes:
    """Return the bytes of the values as float16."""
    return to_float16(values).view(np.uint8)


QUANTIZERS: Mapping[Format, Callable[[Float32], Bytes]] = {
    "q8_0": _q8_0,
    "q5_1": lambda blocks: _above_minimum(blocks, 5),
    "q5_0": lambda blocks: _around_zero(blocks, 5),
    "q4_1": lambda blocks: _above_minimum(blocks, 4),
    "q4_0": lambda blocks: _around_zero(blocks, 4),
}
"""By the format of the blocks."""
