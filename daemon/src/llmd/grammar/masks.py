"""Which tokens the grammars of many rows allow next, as bits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.grammar.matcher import Matcher

Masks = NDArray[np.uint32]


class MaskRow(msgspec.Struct, frozen=True):
    """A row that needs a mask. ``new`` are the tokens that its matcher has not seen, drawn since the last mask.

    ``stop_ids`` end the answer; ``longer``: not yet, if it can go on at all.
    """

    matcher: Matcher
    stop_ids: tuple[int, ...]
    new: tuple[int, ...] = ()
    longer: bool = False


class MaskFiller:
    """Fills the masks of rows in parallel, without the interpreter's lock. Used by one thread at a time."""

    def __init__(self, vocab_size: int, num_threads: int) -> None:
        from llguidance import LLExecutor

        self._vocab_size = vocab_size
        self._executor = LLExecutor(num_threads)

    def fill(self, rows: Sequence[MaskRow]) -> tuple[Masks, dict[int, str]]:
        """Masks uint32 ``[rows, ceil(vocab / 32)]``, bit ``id % 32`` of word ``id // 32`` set where the id is allowed.

        Also why rows have none, by their index: these may go on as they like, and must be failed.
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
        """Put the sequence's own stop ids where llguidance has its one mark of the end; returns why there is no mask."""
        if (error := row.matcher.error) is not None:
            return error
        complete = _take(mask, [self._vocab_size])
        stops = [token for token in row.stop_ids if token < self._vocab_size]
        named = _take(mask, stops)
        if complete and not (row.longer and mask.any()):
            _put(mask, stops)
        elif not mask.any():
            _put(mask, named)  # a grammar that ends with a stop id of its own
        return None if mask.any() else "no token of the vocabulary continues it"


def _take(mask: Masks, ids: Sequence[int]) -> list[int]:
    """Clear the bits of ids; returns those that were set."""
    found = [token for token in ids if mask[token // 32] >> (token % 32) & 1]
    for token in found:
        mask[token // 32] &= ~np.uint32(1 << token % 32)
    return found


def _put(mask: Masks, ids: Sequence[int]) -> None:
    for token in ids:
        mask[token // 32] |= np.uint32(1 << token % 32)
