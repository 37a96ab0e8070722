"""Bit masks of the tokens that the grammars of many rows allow next."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.grammar.matcher import Matcher

Masks = NDArray[np.uint32]


class MaskRow(msgspec.Struct, frozen=True):
    """A row that needs a mask."""

    matcher: Matcher
    stop_ids: tuple[int, ...]
    """Tokens that end the answer."""
    new: tuple[int, ...] = ()
    """Tokens sampled since the last mask, which the matcher has not seen."""
    longer: bool = False
    """The answer may end only if nothing else can follow."""


class MaskFiller:
    """Fills the masks of rows in parallel, without the GIL. Only one thread may use it at a time."""

    def __init__(self, vocab_size: int, num_threads: int) -> None:
        from llguidance import LLExecutor

        self._vocab_size = vocab_size
        self._executor = LLExecutor(num_threads)

    def fill(self, rows: Sequence[MaskRow]) -> tuple[Masks, dict[int, str]]:
        """Return masks uint32 ``[rows, ceil(vocab / 32)]``: bit ``id % 32`` of word ``id // 32`` allows id.

        Also return, by row index, why a row has no mask: all bits of such a row are set, and the caller must
        fail it.
        """
        for row in rows:
            row.matcher.accept(row.new)
        wide = np.zeros((len(rows), self._vocab_size // 32 + 1), np.uint32)
        matchers = [(row.matcher.compiled, place) for place, row in enumerate(rows)]
        self._executor.unsafe_compute_mask_ptr(matchers, wide.ctypes.data, wide.strides[0], len(rows))
        failed = {
            place: reason
            for place, row in enumerate(rows)
            if (reason := self._finish(wide[place], row)) is not None
        }
        wide[list(failed)] = 0xFFFFFFFF
        return np.ascontiguousarray(wide[:, : -(-self._vocab_size // 32)]), failed

    def _finish(self, mask: Masks, row: MaskRow) -> str | None:
        """Replace llguidance's end mark with the row's stop ids; return why there is no mask, or None."""
        if (error := row.matcher.error) is not None:
            return error
        complete = _take(mask, [self._vocab_size])
        stops = [token for token in row.stop_ids if token < self._vocab_size]
        named = _take(mask, stops)
        if complete and not (row.longer and mask.any()):
            _put(mask, stops)
        elif not mask.any():
            _put(mask, named)  # the grammar itself ends with a stop id
        return None if mask.any() else "no token of the vocabulary can follow"


def _take(mask: Masks, ids: Sequence[int]) -> list[int]:
    """Clear the bits of ids; return those that were set."""
    found = [token for token in ids if mask[token // 32] >> (token % 32) & 1]
    for token in found:
        mask[token // 32] &= ~np.uint32(1 << token % 32)
    return found


def _put(mask: Masks, ids: Sequence[int]) -> None:
    for token in ids:
        mask[token // 32] |= np.uint32(1 << token % 32)
