"""Output rows of the null device: the logits of a row depend only on its position.

The token ``(STRIDE * position + j) % vocab`` has the logit ``-j``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import Draws, LateEdits, Selection, StepResult
from llmd.api.draws import GREEDY, HOST, SAMPLED, draw_whole_rows
from llmd.api.philox import uniforms
from llmd.api.random import Purpose

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

STRIDE = 7919

_LEAST_LOG_WEIGHT = -40.0
"""Adding a weight below exp(-40) to a float64 sum of at least 1 does not change it."""


def null_logits(positions: Int32, vocab: int) -> Float32:
    """Return the logits float32 ``[N, vocab]`` of rows at ``positions``."""
    best = STRIDE * positions.astype(np.int64)
    logits: Float32 = -((np.arange(vocab) - best[:, None]) % vocab).astype(np.float32)
    return logits


class NullRows:
    """What the stage returns for output rows, in closed form. Edits and masks have no effect on it."""

    def __init__(self, positions: Int32, selection: Selection, num_candidates: int, vocab: int) -> None:
        order = np.arange(min(num_candidates, vocab), dtype=np.int32)
        count, top = len(positions), min(selection.raw_top, len(order))
        ids = _tokens(positions[:, None], order, vocab)
        logits = np.broadcast_to(-order.astype(np.float32), ids.shape)
        self._result = StepResult(
            ids=ids,
            edited=logits,
            raw=logits,
            raw_logsumexp=_logsumexp(np.ones(count, np.float32), vocab),
            edited_logsumexp=_logsumexp(selection.temperatures, vocab),
            edited_entropy=_entropy(selection.temperatures, vocab),
            edited_deviation=np.full(count, np.sqrt((vocab**2 - 1) / 12), np.float32),
            num_allowed=np.full(count, vocab, np.int32),
            target_raw=np.full(count, np.nan, np.float32),
            top_ids=ids[:, :top],
            top_raw=logits[:, :top],
            tokens=None if selection.draws is None else _draw(positions, selection.draws, vocab),
        )

    def apply_edits(self, edits: LateEdits) -> None:
        """Do nothing."""

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Do nothing."""

    def result(self) -> StepResult:
        return self._result


def _tokens(positions: Int32, places: NDArray[np.integer], vocab: int) -> Int32:
    """Return the ids of the tokens at these places in the order of their row, 0 being the best."""
    return ((STRIDE * positions.astype(np.int64) + places) % vocab).astype(np.int32)


def _draw(positions: Int32, draws: Draws, vocab: int) -> Int32:
    places = np.where(draws.kinds == GREEDY, 0, -1)
    sampled = draws.kinds == SAMPLED
    if sampled.any():
        table = draws.table[sampled]
        count = min(vocab, 1 + int(np.ceil(-_LEAST_LOG_WEIGHT * table[:, :2].max())))
        u = uniforms(draws.seeds[sampled], draws.positions[sampled], draws.choices[sampled], Purpose.SAMPLE)
        ordered = np.broadcast_to(-np.arange(count, dtype=np.float32), (len(u), count))
        places[sampled] = draw_whole_rows(ordered, table, u)
    return np.where(draws.kinds == HOST, np.int32(-1), _tokens(positions, places, vocab))


def _logsumexp(temperatures: Float32, vocab: int) -> Float32:
    """Return the log-sum-exp of the logits 0, -1, … of a row, a geometric series."""
    ratio = np.exp(-1.0 / temperatures.astype(np.float64))
    series: Float32 = np.log((1 - ratio**vocab) / (1 - ratio)).astype(np.float32)
    return series


def _entropy(temperatures: Float32, vocab: int) -> Float32:
    """Return the entropy of a row, from its log-sum-exp and a truncated geometric mean."""
    ratio = np.exp(-1.0 / temperatures.astype(np.float64))
    mean = ratio / (1 - ratio) - vocab * ratio**vocab / (1 - ratio**vocab)
    entropy: Float32 = (_logsumexp(temperatures, vocab) + mean / temperatures).astype(np.float32)
    return entropy
