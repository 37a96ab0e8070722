"""Masks of the tokens that a request allows, in the form of grammar masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.uint32]
"""``[ceil(vocab / 32)]``; bit ``id % 32`` of word ``id // 32`` is set if the id is allowed."""


def pack(ids: Sequence[int], vocab_size: int) -> Mask:
    """Return the mask that allows only these ids. It is read-only, because forks share it."""
    bits = np.zeros(-(-vocab_size // 32) * 32, np.bool_)
    bits[list(ids)] = True
    mask: Mask = np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
    mask.flags.writeable = False
    return mask
