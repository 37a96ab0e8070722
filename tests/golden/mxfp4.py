"""Weights of tiny models in MXFP4, as gpt-oss stores them: codes and scales in two tensors.

Source: Open Compute Project 2023, "OCP Microscaling Formats (MX) Specification"; the order of codes is that
of the published checkpoints: two neighbours in a byte, the first in its low half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tests.golden.weights import random_words

MXFP4_PARTS = ("_blocks", "_scales")
SMALLEST_SCALE = 121
"""2 to the power of -6: with scales up to four times that, 64 inputs give outputs of about their size."""
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)

Stored = NDArray[np.generic]


def mxfp4_bytes(seed: int, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The bytes of a tensor of codes or scales."""
    words = random_words(seed, name, math.prod(shape)).reshape(shape)
    if name.endswith("_scales"):
        return (SMALLEST_SCALE + words % np.uint64(3)).astype(np.uint8)
    return (words & np.uint64(0xFF)).astype(np.uint8)


def with_mxfp4_as_numbers(tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Replace codes and scales by the numbers that they mean, as matrices ``[in, out]`` of experts."""
    found: dict[str, Stored] = {}
    for name, tensor in tensors.items():
        if name.endswith("_blocks"):
            whole = name.removesuffix("_blocks")
            scales = tensors[f"{whole}_scales"].astype(np.float32)
            found[whole] = _numbers(tensor.astype(np.uint8), scales)
        elif not name.endswith("_scales"):
            found[name] = tensor
    return found


def with_joined_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Replace those of codes and scales by those of the matrices ``[experts, out, in]``."""
    found = {}
    for name, shape in shapes.items():
        if name.endswith("_blocks"):
            found[name.removesuffix("_blocks")] = (*shape[:-2], 32 * shape[-2])
        elif not name.endswith("_scales"):
            found[name] = shape
    return found


def _numbers(codes: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    values = np.array((*MAGNITUDES, *(-value for value in MAGNITUDES)), np.float32)
    elements = np.stack([values[codes & 15], values[codes >> 4]], axis=-1).reshape(*codes.shape[:-1], 32)
    numbers = elements * np.exp2(scales - 127)[..., None]
    return numbers.reshape(*scales.shape[:-1], -1).swapaxes(-1, -2)
