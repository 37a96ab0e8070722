"""A selection as the device reads it."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import LateEdits, Selection
from llmd.api.draws import HOST
from llmd_backend_vulkan.commands import Words
from llmd_backend_vulkan.outputs.layout import HEADER_WORDS, ROW_WORDS, OutputsLayout

_NONE = 0xFFFFFFFF
_LEAST, _MOST = 1e-30, 1e30
"""Temperatures are kept within these, so that float32 holds them."""


class Edits(msgspec.Struct, frozen=True):
    """All edits of a selection, those of late rows at the end."""

    words: Words
    """``[E, 3]``: id, and the bits of factor and bias."""
    first: NDArray[np.integer]
    """``[N]``: index of each row's first edit."""
    counts: NDArray[np.integer]
    """``[N]``: edits of each row."""


def all_edits(selection: Selection, late: LateEdits | None) -> Edits:
    """Return the edits of a selection, with those of its late rows."""
    first, counts = selection.edit_offsets[:-1].copy(), np.diff(selection.edit_offsets)
    parts = [_edit_words(selection.edit_ids, selection.edit_factors, selection.edit_biases)]
    if late is not None and selection.late is not None:
        first[selection.late] = len(selection.edit_ids) + late.offsets[:-1]
        counts[selection.late] = np.diff(late.offsets)
        parts.append(_edit_words(late.ids, late.factors, late.biases))
    return Edits(np.concatenate(parts), first, counts)


def pack_selection(out: Words, layout: OutputsLayout, selection: Selection, edits: Edits) -> None:
    """Write a selection to the beginning of ``out``."""
    count = selection.num_rows
    out[:HEADER_WORDS] = count, min(selection.raw_top, layout.vocab), 0, 0
    rows = out[HEADER_WORDS : HEADER_WORDS + ROW_WORDS * count].reshape(count, ROW_WORDS)
    rows[:] = 0
    rows[:, 0] = _bits(np.clip(selection.temperatures, _LEAST, _MOST))
    rows[:, 1] = selection.targets.view(np.uint32)
    rows[:, 2] = HOST
    rows[:, 3] = described_rows(selection)
    rows[:, 4] = edits.first
    rows[:, 5] = edits.counts
    rows[:, 6] = np.where(selection.masked, np.cumsum(selection.masked) - 1, _NONE)
    rows[:, 8:10] = _bits(np.ones((count, 2)))
    if selection.draws is not None:
        _pack_draws(rows, layout.vocab, selection)


def described_rows(selection: Selection) -> NDArray[np.bool_]:
    """Return which rows need more than their token."""
    if selection.draws is None:
        return np.ones(selection.num_rows, np.bool_)
    return ~selection.draws.token_only


def _pack_draws(rows: Words, vocab: int, selection: Selection) -> None:
    draws = selection.draws
    assert draws is not None, "checked by the caller"
    table = draws.table
    rows[:, 2] = draws.kinds
    rows[:, 8:10] = _bits(np.clip(table[:, :2], _LEAST, _MOST))
    rows[:, 10] = np.clip(table[:, 2], 1, vocab).astype(np.uint32)
    rows[:, 11:14] = _bits(table[:, 3:])
    rows[:, 14:16] = draws.seeds.view(np.uint32).reshape(-1, 2)
    rows[:, 16] = draws.positions.astype(np.uint32)
    rows[:, 17] = draws.choices.astype(np.uint32)


def _edit_words(ids: NDArray[np.int32], factors: NDArray[np.float32], biases: NDArray[np.float32]) -> Words:
    return np.stack([ids.view(np.uint32), _bits(factors), _bits(biases)], axis=1)


def _bits(values: NDArray[np.floating]) -> Words:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)
