"""Memory for masks that two processes share."""

from __future__ import annotations

import mmap
import os

import numpy as np

from llmd.grammar.masks import Masks


class MaskMemory:
    """A mapping of a descriptor that holds masks, uint32 ``[rows, ceil(vocab / 32)]``."""

    def __init__(self, descriptor: int, vocab_size: int) -> None:
        """As many rows as the file has; the descriptor may be closed afterwards."""
        shared = np.frombuffer(mmap.mmap(descriptor, 0), np.uint32)
        self._masks = shared.reshape(-1, mask_words(vocab_size))

    def first(self, count: int) -> Masks:
        """A view of the masks of so many rows."""
        return self._masks[:count]


def mask_words(vocab_size: int) -> int:
    """The numbers of one mask."""
    return -(-vocab_size // 32)


def new_mask_memory(rows: int, vocab_size: int) -> int:
    """A descriptor of memory for so many masks, taken where it is written; whoever has it closes it."""
    descriptor = os.memfd_create("masks")
    os.truncate(descriptor, rows * mask_words(vocab_size) * np.uint32().itemsize)
    return descriptor
