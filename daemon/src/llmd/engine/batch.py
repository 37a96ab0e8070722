"""A plan of chunks as the arrays of a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.step import Selection, Step
from llmd.sampling.sampler import is_greedy
from llmd.scheduler.chunk import Chunk

NO_COPIES = np.zeros((0, 3), np.int32)
_NO_IDS = np.zeros(0, np.int32)
_NO_VALUES = np.zeros(0, np.float32)


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


def select_rows(
    rows: NDArray[np.int32], temperatures: NDArray[np.float32] | None = None, *, raw_top: int = 0
) -> Selection:
    """Return a selection of the rows, without edits, masks or targets."""
    count = len(rows)
    return Selection(
        rows=rows,
        edit_offsets=np.zeros(count + 1, np.int32),
        edit_ids=_NO_IDS,
        edit_factors=_NO_VALUES,
        edit_biases=_NO_VALUES,
        masked=np.zeros(count, np.bool_),
        temperatures=np.ones(count, np.float32) if temperatures is None else temperatures,
        targets=np.full(count, -1, np.int32),
        raw_top=raw_top,
    )


def build_selection(step: Step, chunks: Sequence[Chunk]) -> tuple[Selection, list[Chunk]]:
    """Select the last row of each chunk that ends its sequence; return those chunks in the order of the rows."""
    ending = [(chunk, row - 1) for chunk, row in zip(chunks, step.row_offsets[1:], strict=True) if chunk.ends]
    sampling = [chunk.sequence.sampling for chunk, _ in ending]
    temperatures = [1.0 if is_greedy(params) else params.temperature for params in sampling]
    wanted = (params.logprobs or 0 for params in sampling)
    selection = select_rows(
        np.array([row for _, row in ending], np.int32),
        np.array(temperatures, np.float32),
        raw_top=max(wanted, default=0),
    )
    return selection, [chunk for chunk, _ in ending]
