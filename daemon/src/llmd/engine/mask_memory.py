"""Shared memory of two processes for masks."""

from __future__ import annotations

import mmap
import os

import numpy as np

from llmd.grammar.masks import Masks


class MaskMemory:
    """Masks, uint32 ``[rows, ceil(vocab / 32)]``, in memory that is mapped from a descriptor."""

    def __init__(self, descriptor: int, vocab_size: int) -> None:
        """Map all rows of the file; the descriptor may be closed afterwards."""
        shared = np.frombuffer(mmap.mmap(descriptor, 0), np.uint32)
        self._masks = shared.reshape(-1, mask_words(vocab_size))

    def first(self, count: int) -> Masks:
        """Return a view of the first ``count`` masks."""
        return self._masks[:count]


def mask_words(vocab_size: int) -> int:
    """Return the number of words in a mask."""
    return -(-vocab_size // 32)


def new_mask_memory(rows: int, vocab_size: int) -> int:
    """Return a descriptor of memory for ``rows`` masks, allocated on first write. The caller closes it."""
    descriptor = os.memfd_create("masks")
    os.truncate(descriptor, rows * mask_words(vocab_size) * np.uint32().itemsize)
    return descriptor
