"""Counter-based random numbers.

Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3" (Philox4x32-10).
"""

from __future__ import annotations

from llmd.api.random import Purpose

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return four random 32-bit words for a counter of four and a key of two words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & _WORD, (left >> 32) ^ c3 ^ k1, left & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, position: int, choice: int, purpose: Purpose) -> float:
    """Return the number in (0, 1) that belongs to a seed, a token position, a choice and a purpose."""
    words = philox4x32((position, choice, int(purpose), 0), (seed & _WORD, (seed >> 32) & _WORD))
    return (words[0] + 0.5) * 2.0**-32
