"""The weights of tiny models: a pure formula of (seed, tensor name, index), the same on every machine.

Element ``i`` of a tensor comes from word ``i`` of the stream of Philox4x64-10 (Salmon et al. 2011, "Parallel
Random Numbers: As Easy as 1, 2, 3") whose key is the first 16 bytes, little-endian, of
SHA-256(``"<seed>:<tensor name>"``). The word is cut into four 16-bit numbers; their sum ``s`` is nearly
normal (Irwin-Hall), and the element is ``mean + std * (s - 131070) / sqrt((2^32 - 1) / 3)``, in float64, then
rounded to the checkpoint's dtype. Integers and one multiplication: no library's logarithm decides a bit of
it.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

E8M0 = np.dtype([("exponent", np.uint8)])
"""Powers of two, ``2 ** (exponent - 127)``. NumPy lacks such numbers."""
E2M1_PAIRS = np.dtype([("codes", np.uint8)])
"""Two numbers of 4 bits in a byte, the first in its low half."""

SUM_MEAN = 4 * 65535 / 2
SUM_STD = math.sqrt((2**32 - 1) / 3)


def random_words(seed: int, name: str, count: int) -> NDArray[np.uint64]:
    """The first ``count`` words of the stream that belongs to (seed, name)."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    words = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw(count)
    return np.asarray(words, np.uint64)


def draw(seed: int, name: str, shape: tuple[int, ...], mean: float, std: float) -> NDArray[np.float32]:
    """A float32 tensor of the formula above."""
    words = random_words(seed, name, math.prod(shape))
    total = sum((words >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    centred = (np.asarray(total, np.float64) - SUM_MEAN) / SUM_STD
    return (mean + std * centred).astype(np.float32).reshape(shape)


def draw_tokens(seed: int, count: int, vocab_size: int) -> list[int]:
    """A prompt: words of the stream ``prompt``, modulo the vocabulary."""
    return [int(word) % vocab_size for word in random_words(seed, "prompt", count)]


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Bits of the nearest bfloat16, ties to even; finite values only."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The float32 values of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
