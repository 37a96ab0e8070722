"""Turn the logits of output rows into candidates and tokens, in NumPy: what a `Stage` does after the head.

For devices that copy their logits to the host. The conformance suite compares other devices with this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.checks import check_late_edits
from llmd.api.draws import GREEDY, HOST, SAMPLED, Draws, best_first, draw_whole_rows
from llmd.api.output_checks import check_masks
from llmd.api.philox import uniforms
from llmd.api.random import Purpose
from llmd.api.step import Float32, Int32, LateEdits, Selection, StepResult


class OutputRows:
    """Logits of the output rows of one ticket, their candidates, and the tokens that the device draws.

    ``raw`` and ``edited`` are float32 ``[N, vocab]``, as `Stage.raw_rows` and `Stage.rows` return them.
    Late rows have no candidates before `apply_edits`, masked rows none before `apply_masks`.
    """

    def __init__(self, raw: Float32, selection: Selection, num_candidates: int) -> None:
        count = raw.shape[0]
        self.raw = raw
        self.edited = raw.copy()
        self._selection = selection
        self._masked = np.flatnonzero(selection.masked)
        self._late = np.flatnonzero(np.zeros(count) if selection.late is None else selection.late)
        self._needs_edits, self._needs_masks = bool(self._late.size), bool(self._masked.size)
        edits = selection.edit_offsets, selection.edit_ids, selection.edit_factors, selection.edit_biases
        _edit(self.edited, np.arange(count), LateEdits(*edits))
        kept = min(num_candidates, raw.shape[1])
        top_ids = (
            best_first(raw)[:, : selection.raw_top] if selection.raw_top else np.zeros((count, 0), np.int32)
        )
        self._result = StepResult(
            ids=np.full((count, kept), -1, np.int32),
            edited=np.full((count, kept), -np.inf, np.float32),
            raw=np.full((count, kept), -np.inf, np.float32),
            raw_logsumexp=_rowwise_logsumexp(raw),
            edited_logsumexp=np.full(count, -np.inf, np.float32),
            edited_entropy=np.zeros(count, np.float32),
            edited_deviation=np.zeros(count, np.float32),
            num_allowed=np.zeros(count, np.int32),
            target_raw=_targets(raw, selection.targets),
            top_ids=top_ids,
            top_raw=np.take_along_axis(raw, top_ids, axis=1),
            tokens=None if selection.draws is None else np.full(count, -1, np.int32),
        )
        self._reduce(np.setdiff1d(np.arange(count), np.union1d(self._late, self._masked)))

    def apply_edits(self, edits: LateEdits) -> None:
        """Apply the edits of `Stage.apply_edits`.

        Raises:
            ValueError: an array violates the contract.
        """
        check_late_edits(self.raw.shape[1], self._selection, edits)
        _edit(self.edited, self._late, edits)
        self._needs_edits = False
        self._reduce(np.setdiff1d(self._late, self._masked))

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Apply the masks of `Stage.apply_masks`.

        Raises:
            ValueError: wrong shape or dtype, or late rows still wait for `apply_edits`.
        """
        rows, vocab = self._masked, self.raw.shape[1]
        check_masks(vocab, self._selection, masks)
        if self._needs_edits:
            raise ValueError("late rows need apply_edits before apply_masks")
        bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=1, bitorder="little")
        self.edited[rows] = np.where(bits[:, :vocab] == 1, self.edited[rows], np.float32(-np.inf))
        self._needs_masks = False
        self._reduce(rows)

    def result(self) -> StepResult:
        """Return the candidates and tokens.

        Raises:
            ValueError: late rows still wait for `apply_edits`, or masked rows for `apply_masks`.
        """
        if self._needs_edits:
            raise ValueError("late rows have no candidates before apply_edits")
        if self._needs_masks:
            raise ValueError("masked rows have no candidates before apply_masks")
        return self._result

    def token(self, output: int) -> int:
        """Return the token of an output row, for a step that is fed from this ticket.

        Raises:
            ValueError: as `result`.
        """
        result, draws = self.result(), self._selection.draws
        if result.tokens is None or draws is None or draws.kinds[output] == HOST:
            return int(result.ids[output, 0])
        return int(result.tokens[output])

    def _reduce(self, rows: NDArray[np.intp]) -> None:
        """Compute the results of rows whose edited logits are complete."""
        if not rows.size:
            return
        result, draws = self._result, self._selection.draws
        edited = self.edited[rows]
        order = best_first(edited)
        if draws is not None and result.tokens is not None:
            result.tokens[rows] = _draw(edited, order, draws, rows)
            described = ~draws.token_only[rows]
            rows, edited, order = rows[described], edited[described], order[described]
        order = order[:, : result.ids.shape[1]]
        result.ids[rows] = order
        result.edited[rows] = np.take_along_axis(edited, order, axis=1)
        result.raw[rows] = np.take_along_axis(self.raw[rows], order, axis=1)
        tempered = edited / self._selection.temperatures[rows, None].astype(np.float64)
        result.edited_logsumexp[rows] = _rowwise_logsumexp(tempered)
        result.edited_entropy[rows] = _rowwise_entropy(tempered)
        result.edited_deviation[rows] = _rowwise_deviation(edited)
        result.num_allowed[rows] = np.count_nonzero(edited > -np.inf, axis=1)


def _draw(edited: Float32, order: Int32, draws: Draws, rows: NDArray[np.intp]) -> Int32:
    """Return the tokens of some ``rows`` of the draws; -1 for those that the host draws."""
    kinds = draws.kinds[rows]
    tokens = np.where(kinds == GREEDY, order[:, 0], np.int32(-1))
    chosen = np.flatnonzero(kinds == SAMPLED)
    rows, order = rows[chosen], order[chosen]
    u = uniforms(draws.seeds[rows], draws.positions[rows], draws.choices[rows], Purpose.SAMPLE)
    index = draw_whole_rows(np.take_along_axis(edited[chosen], order, axis=1), draws.table[rows], u)
    tokens[chosen] = order[np.arange(chosen.size), index]
    return tokens


def _edit(logits: Float32, rows: NDArray[np.intp], edits: LateEdits) -> None:
    """Edit some rows of logits in place; ``edits`` has an entry for each of them."""
    for row, first, end in zip(rows.tolist(), edits.offsets[:-1], edits.offsets[1:], strict=True):
        ids, factors = edits.ids[first:end], edits.factors[first:end]
        old = logits[row, ids]
        logits[row, ids] = np.where(old > 0, old / factors, old * factors) + edits.biases[first:end]


def _targets(raw: Float32, targets: Int32) -> Float32:
    found = raw[np.arange(raw.shape[0]), np.maximum(targets, 0)]
    return np.where(targets >= 0, found, np.float32(np.nan))


def _rowwise_logsumexp(values: NDArray[np.floating]) -> Float32:
    wide = values.astype(np.float64)
    largest = wide.max(axis=1, keepdims=True)
    largest[np.isneginf(largest)] = 0.0  # no id is allowed in this row
    with np.errstate(divide="ignore"):
        total: Float32 = (np.log(np.exp(wide - largest).sum(axis=1)) + largest[:, 0]).astype(np.float32)
    return total


def _rowwise_entropy(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row's softmax; 0 if no id is allowed."""
    shifted = values - np.maximum(values.max(axis=1, keepdims=True), np.finfo(np.float64).min)
    weights = np.exp(shifted)
    total = np.maximum(weights.sum(axis=1), 1.0)  # the best id has weight 1
    weighted = np.where(weights > 0.0, weights * np.maximum(shifted, -1e4), 0.0).sum(axis=1)
    entropy: NDArray[np.float64] = np.log(total) - weighted / total
    return entropy


def _rowwise_deviation(values: Float32) -> NDArray[np.float64]:
    """Return the standard deviation of the allowed values of each row; 0 if there are none."""
    allowed = values > -np.inf
    wide = np.where(allowed, values, 0.0).astype(np.float64)
    count = np.maximum(allowed.sum(axis=1), 1)
    mean = wide.sum(axis=1) / count
    squares = np.where(allowed, np.square(wide - mean[:, None]), 0.0).sum(axis=1)
    deviation: NDArray[np.float64] = np.sqrt(squares / count)
    return deviation
