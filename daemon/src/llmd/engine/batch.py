"""A plan of chunks as the arrays of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from llmd.api.step import Selection, Step
from llmd.sampling.edits import LogitEdits
from llmd.sampling.sampler import is_greedy
from llmd.scheduler.chunk import Chunk

NO_COPIES = np.zeros((0, 3), np.int32)


def build_step(
    chunks: Sequence[Chunk], tables: tuple[NDArray[np.int32], ...], copies: NDArray[np.int32] = NO_COPIES
) -> Step:
    """Lay the chunks' tokens out one after the other."""
    tokens = [t for c in chunks for t in c.sequence.tokens[c.start : c.start + c.count]]
    positions = [p for c in chunks for p in range(c.start, c.start + c.count)]
    offsets = np.zeros(len(chunks) + 1, np.int32)
    np.cumsum([c.count for c in chunks], out=offsets[1:])
    return Step(
        token_ids=np.array(tokens, np.int32),
        positions=np.array(positions, np.int32),
        row_offsets=offsets,
        block_tables=tables,
        copies=copies,
    )


Edits = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]
"""Ids, factors and biases of one row's edits."""

NO_EDITS: Edits = (np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32))


def select_rows(
    rows: NDArray[np.int32],
    temperatures: NDArray[np.float32] | None = None,
    edits: Sequence[Edits] = (),
    *,
    raw_top: int = 0,
) -> Selection:
    """Return a selection of the rows, without masks or targets; ``edits`` holds those of each row, or nothing."""
    count = len(rows)
    offsets = np.zeros(count + 1, np.int32)
    if edits:
        np.cumsum([len(ids) for ids, _, _ in edits], out=offsets[1:])
    ids, factors, biases = (np.concatenate(values) for values in zip(*(edits or [NO_EDITS]), strict=True))
    return Selection(
        rows=rows,
        edit_offsets=offsets,
        edit_ids=ids,
        edit_factors=factors,
        edit_biases=biases,
        masked=np.zeros(count, np.bool_),
        temperatures=np.ones(count, np.float32) if temperatures is None else temperatures,
        targets=np.full(count, -1, np.int32),
        raw_top=raw_top,
    )


def build_selection(
    step: Step, chunks: Sequence[Chunk], edits: Mapping[int, LogitEdits] = MappingProxyType({})
) -> tuple[Selection, list[Chunk]]:
    """Select the last row of each chunk that ends its sequence; return those chunks in the order of the rows.

    ``edits`` has an entry for each request that edits its logits.
    """
    ending = [(chunk, row - 1) for chunk, row in zip(chunks, step.row_offsets[1:], strict=True) if chunk.ends]
    sampling = [chunk.sequence.sampling for chunk, _ in ending]
    temperatures = [1.0 if is_greedy(params) else params.temperature for params in sampling]
    wanted = (params.logprobs or 0 for params in sampling)
    selection = select_rows(
        np.array([row for _, row in ending], np.int32),
        np.array(temperatures, np.float32),
        [_row(edits.get(chunk.sequence.request_id)) for chunk, _ in ending] if edits else (),
        raw_top=max(wanted, default=0),
    )
    return selection, [chunk for chunk, _ in ending]


def _row(edits: LogitEdits | None) -> Edits:
    return NO_EDITS if edits is None else edits.row()
