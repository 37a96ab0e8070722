"""Weights of tiny models in MXFP4, as gpt-oss and DeepSeek-V4 store them: codes and scales in two tensors.

Source: Open Compute Project 2023, "OCP Microscaling Formats (MX) Specification"; the order of codes is that
of the published checkpoints: two neighbours in a byte, the first in its low half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.compressed_tensors import DEEPSEEK_V4, published_form
from tests.golden.fp8 import powers_of_two, scale_name
from tests.golden.weights import E2M1_PAIRS, random_words

MXFP4_PARTS = ("_blocks", "_scales")
SMALLEST_SCALE = 121
"""2 to the power of -6: with scales up to four times that, 64 inputs give outputs of about their size."""
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
TYPICAL = 2.6
"""The standard deviation of numbers that use all magnitudes."""

Stored = NDArray[np.generic]


def mxfp4_bytes(seed: int, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The bytes of a tensor of codes or scales."""
    words = random_words(seed, name, math.prod(shape)).reshape(shape)
    if name.endswith("_scales"):
        return (SMALLEST_SCALE + words % np.uint64(3)).astype(np.uint8)
    return (words & np.uint64(0xFF)).astype(np.uint8)


def is_fp4(config: Mapping[str, Any], name: str) -> bool:
    """Whether a tensor is a matrix of an expert of DeepSeek-V4 in MXFP4."""
    return config["model_type"] == DEEPSEEK_V4 and published_form(config, name) == "fp4"


def fp4_tensors(seed: int, name: str, values: NDArray[np.float32]) -> Iterator[tuple[str, Stored]]:
    """The codes, `E2M1_PAIRS` ``[rows, cols / 2]``, and the scales, `E8M0` ``[rows, cols / 32]``.

    Weights get about the given values times a factor of 0.5, 1 or 2 for each scale, so that each counts.
    """
    rows, cols = values.shape
    exponent = round(math.log2(float(np.std(values)) / TYPICAL))
    codes = e2m1_codes(values / np.float32(2.0**exponent)).reshape(rows, -1, 2)
    words = random_words(seed, scale_name(name), rows * cols // 32).reshape(rows, -1)
    yield name, (codes[..., 0] | codes[..., 1] << 4).view(E2M1_PAIRS)
    yield scale_name(name), powers_of_two(exponent, words)


def e2m1_codes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The codes of the nearest numbers of 4 bits."""
    table = np.array(MAGNITUDES)
    places = np.searchsorted((table[1:] + table[:-1]) / 2, np.abs(values)).astype(np.uint8)
    codes: NDArray[np.uint8] = places | np.signbit(values).astype(np.uint8) << 3
    return codes


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
