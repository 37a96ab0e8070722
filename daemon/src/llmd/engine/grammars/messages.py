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
    """Compile a grammar for a sequence."""

    sequence_id: int
    grammar: Grammar
    output: tuple[int, ...] = ()
    """The tokens that the answer already has."""


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Copy the grammar state of a sequence for a new sequence."""

    parent_id: int
    child_id: int


class Forget(msgspec.Struct, frozen=True, tag=True):
    """A sequence has ended, whether its grammar is compiled or not."""

    sequence_id: int


class BoundRow(msgspec.Struct, frozen=True, array_like=True):
    """A row that needs a mask: `llmd.grammar.masks.MaskRow` with a sequence id instead of a matcher."""

    sequence_id: int
    stop_ids: tuple[int, ...]
    new: tuple[int, ...]
    longer: bool
    is_draft: bool = False
    """``new`` are proposals after the tokens of an earlier row of the sequence, which does not get them. If
    the grammar forbids them, the row may have any mask."""


class Fill(msgspec.Struct, frozen=True, tag=True):
    """Fill the masks of rows, written in order to the start of the shared memory."""

    rows: tuple[BoundRow, ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The vocabulary has been loaded."""


class Compiled(msgspec.Struct, frozen=True, tag=True):
    """The compiler has finished with the grammar of a sequence."""

    sequence_id: int
    message: str = ""
    """Why the grammar cannot be followed; empty: it is ready."""
    hint: str = ""


class Filled(msgspec.Struct, frozen=True, tag=True):
    """The masks are filled."""

    failed: dict[int, str]
    """The rows without a mask, by index, with the reason."""


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
