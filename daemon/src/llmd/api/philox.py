"""Counter-based random numbers, for one counter or many at once.

Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3" (Philox4x32-10).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api.random import Purpose

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_FEW = 12
"""Fewer numbers than this are computed faster one by one (measured)."""

Word = Any
"""An int or an array uint64 ``[N]``; Any, because NumPy's types for mixed arithmetic are wider than its
results."""


def philox4x32(
    counter: tuple[Word, Word, Word, Word], key: tuple[Word, Word]
) -> tuple[Word, Word, Word, Word]:
    """Return four random 32-bit words for a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & _WORD, (left >> 32) ^ c3 ^ k1, left & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, position: int, choice: int, purpose: Purpose) -> float:
    """Return the number in (0, 1) for a seed, a token position, a choice and a purpose."""
    words = philox4x32((position, choice, int(purpose), 0), (seed & _WORD, (seed >> 32) & _WORD))
    number: float = (words[0] + 0.5) * 2.0**-32
    return number


def uniforms(
    seeds: NDArray[np.uint64], positions: NDArray[np.uint64], choices: NDArray[np.uint64], purpose: Purpose
) -> NDArray[np.float64]:
    """Return `uniform` for each entry of arrays ``[N]``."""
    if len(positions) < _FEW:
        counters = zip(seeds.tolist(), positions.tolist(), choices.tolist(), strict=True)
        return np.array([uniform(*counter, purpose) for counter in counters], np.float64)
    none = np.zeros_like(positions)
    words = philox4x32((positions, choices, none + int(purpose), none), (seeds & _WORD, seeds >> 32))
    numbers: NDArray[np.float64] = (words[0] + 0.5) * 2.0**-32
    return numbers
