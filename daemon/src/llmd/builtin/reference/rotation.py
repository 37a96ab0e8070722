"""Rotate heads before they are stored in 4 bits. This spreads large elements over the head, so that no
outlier determines the scale of its group.

Source: Ashkboos et al. 2024, "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs".
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", np.float32, np.float64)


def rotate(x: NDArray[Real]) -> NDArray[Real]:
    """Return heads ``[…, head_dim]`` under an orthonormal Hadamard transform, which is its own inverse.

    A head is split into powers of two, largest first (96 into 64 and 32). Each piece is transformed
    independently, in the order of Sylvester's construction. Every sum and the product with 1/√n are rounded
    to the dtype of ``x``.
    """
    rotated = x.copy()
    first = 0
    while first < x.shape[-1]:
        size = 1 << ((x.shape[-1] - first).bit_length() - 1)
        rotated[..., first : first + size] = _transform(x[..., first : first + size])
        first += size
    return rotated


def _transform(x: NDArray[Real]) -> NDArray[Real]:
    size = x.shape[-1]
    distance = 1
    while distance < size:
        pairs = x.reshape(*x.shape[:-1], size // (2 * distance), 2, distance)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        x = np.stack((low + high, low - high), axis=-2).reshape(x.shape)
        distance *= 2
    return x * x.dtype.type(1 / np.sqrt(size))
