"""NVFP4 as it is stored, and as llmd computes with it: numbers of type e4m3fn, 16 of which share a scale.

A weight is a number of 4 bits (e2m1: a sign, 2 bits of exponent, 1 of fraction) times the e4m3fn scale of its
16 inputs times a float32 scale of the whole matrix. Each e2m1 number is an e4m3fn number, so nothing is lost.

Sources: NVIDIA 2025, "Pretraining Large Language Models with NVFP4" (arXiv:2509.25149), and for the blocks of
GGUF files ``gguf-py/gguf/quants.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.models.formats.fp8 import from_e4m3
from llmd.models.formats.row_chunks import for_row_chunks

GROUP = 16
"""Weights that share a scale."""
BLOCK = 64
"""Weights of a block of a GGUF file: 4 scales, then the codes."""
BLOCK_BYTES = BLOCK // GROUP + BLOCK // 2

Bytes = NDArray[np.uint8]
Float32 = NDArray[np.float32]

# 0, 0.5, 1, 1.5, 2, 3, 4, 6 as e4m3fn numbers, then the same with a sign.
_MAGNITUDES = (0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C)
_NUMBERS = np.array([*_MAGNITUDES, *(0x80 | one for one in _MAGNITUDES)], np.uint8)


def of_pairs(packed: Bytes) -> Bytes:
    """Return e4m3fn numbers, uint8 ``[rows, row length]``, of bytes ``[rows, row length / 2]``.

    A byte holds two weights next to each other, the first in its low half.
    """
    numbers = np.empty((len(packed), 2 * packed.shape[1]), np.uint8)

    def of_rows(rows: slice) -> None:
        numbers[rows, 0::2] = _NUMBERS[packed[rows] & 0x0F]
        numbers[rows, 1::2] = _NUMBERS[packed[rows] >> 4]

    for_row_chunks(len(packed), numbers.shape[1], of_rows)
    return numbers


def of_blocks(blocks: Bytes) -> tuple[Bytes, Bytes]:
    """Return the numbers of a GGUF file's blocks ``[rows, 36 * blocks]``, and their scales.

    Both are e4m3fn: uint8 ``[rows, row length]`` and ``[rows, row length / 16]``. Of the 8 bytes of 16
    weights, the low halves are the first 8.
    """
    split = blocks.reshape(len(blocks), -1, BLOCK_BYTES)
    num_scales = BLOCK // GROUP
    numbers = np.empty((len(blocks), split.shape[1], num_scales, 2, GROUP // 2), np.uint8)

    def of_rows(rows: slice) -> None:
        codes = split[rows, :, num_scales:].reshape(-1, split.shape[1], num_scales, GROUP // 2)
        numbers[rows, ..., 0, :] = _NUMBERS[codes & 0x0F]
        numbers[rows, ..., 1, :] = _NUMBERS[codes >> 4]

    for_row_chunks(len(blocks), split.shape[1] * BLOCK, of_rows)
    return numbers.reshape(len(blocks), -1), split[..., :num_scales].reshape(len(blocks), -1)


def scales_of(codes: Bytes, of_rows: Float32, *, divides: bool) -> Float32:
    """Return the scales ``[rows, groups]``, rounded once: e4m3fn numbers times the scale of the row's matrix.

    ``of_rows`` is ``[rows, 1]``; it ``divides`` in the checkpoints of some exporters.

    Raises:
        ArithmeticError: one is infinite or not a number.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scales: Float32 = from_e4m3(codes) / of_rows if divides else from_e4m3(codes) * of_rows
    if not np.isfinite(scales).all():
        raise ArithmeticError("a scale is infinite or not a number")
    return scales
