"""Messages between an engine and its grammar process, in the frames of `llmd.process.frames`, and the memory
that both map for masks.

The process sends `Ready` once, then `Compiled` for each completed `Compile`, and `Filled` for each `Fill`.
"""

from __future__ import annotations

import mmap
import os

import msgspec
import numpy as np

from llmd.api.messages import Grammar
from llmd.grammar.masks import Masks


class Compile(msgspec.Struct, frozen=True, tag=True):
    """Compile a grammar for a sequence, whose answer has the tokens ``output`` already."""

    sequence_id: int
    grammar: Grammar
    output: tuple[int, ...] = ()


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Let a new sequence be where another is in its grammar."""

    parent_id: int
    child_id: int


class Forget(msgspec.Struct, frozen=True, tag=True):
    """A sequence has ended, whether its grammar is compiled or not."""

    sequence_id: int


class BoundRow(msgspec.Struct, frozen=True, array_like=True):
    """A row that needs a mask: as `llmd.grammar.masks.MaskRow`, for the matcher of a sequence."""

    sequence_id: int
    stop_ids: tuple[int, ...]
    new: tuple[int, ...]
    longer: bool


class Fill(msgspec.Struct, frozen=True, tag=True):
    """Fill the masks of rows, into the first places of the shared memory."""

    rows: tuple[BoundRow, ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The vocabulary has been taken in."""


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """The grammar of a sequence is ready, or cannot be followed: then ``message`` says why."""

    sequence_id: int
    message: str = ""
    hint: str = ""


class Filled(msgspec.Struct, frozen=True, tag=True):
    """The masks are there; ``failed`` says why rows have none, by their place."""

    failed: dict[int, str]


ToGrammars = Compile | Fork | Forget | Fill
FromGrammars = Ready | Compiled | Filled


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
