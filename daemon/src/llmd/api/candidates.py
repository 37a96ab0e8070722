"""Turn the logits of output rows into candidates, in NumPy: what a `Stage` does after the head.

For devices that copy their logits to the host. The conformance suite compares other devices with this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.step import Float32, Int32, Selection, StepResult


class OutputRows:
    """Logits of the output rows of one ticket, and their candidates.

    ``raw`` and ``edited`` are float32 ``[N, vocab]``, as `Stage.raw_rows` and `Stage.rows` return them.
    Masked rows have no candidates before `apply_masks`.
    """

    def __init__(self, raw: Float32, selection: Selection, num_candidates: int) -> None:
        self.raw = raw
        self.edited = _edit(raw, selection)
        self._selection = selection
        self._waiting = bool(np.any(selection.masked))
        kept = min(num_candidates, raw.shape[1])
        count = raw.shape[0]
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
            top_ids=_top_ids(raw, selection.raw_top),
            top_raw=np.take_along_axis(raw, _top_ids(raw, selection.raw_top), axis=1),
        )
        self._reduce(np.flatnonzero(~selection.masked))

    def apply_masks(self, masks: NDArray[np.uint32]) -> None:
        """Apply the masks of `Stage.apply_masks`.

        Raises:
            ValueError: wrong shape or dtype.
        """
        rows = np.flatnonzero(self._selection.masked)
        vocab = self.raw.shape[1]
        if masks.shape != (rows.size, -(-vocab // 32)) or masks.dtype != np.uint32:
            raise ValueError(
                f"masks are {masks.dtype} {masks.shape}, expected uint32 {(rows.size, -(-vocab // 32))}"
            )
        bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=1, bitorder="little")
        self.edited[rows] = np.where(bits[:, :vocab] == 1, self.edited[rows], np.float32(-np.inf))
        self._waiting = False
        self._reduce(rows)

    def result(self) -> StepResult:
        """Return the candidates.

        Raises:
            ValueError: masked rows still wait for `apply_masks`.
        """
        if self._waiting:
            raise ValueError("masked rows have no candidates before apply_masks")
        return self._result

    def token(self, output: int) -> int:
        """Return the best edited candidate of an output row, for a step that is fed from this ticket."""
        return int(self.result().ids[output, 0])

    def _reduce(self, rows: NDArray[np.intp]) -> None:
        if not rows.size:
            return
        result = self._result
        result.ids[rows] = _top_ids(self.edited[rows], result.ids.shape[1])
        result.edited[rows] = np.take_along_axis(self.edited[rows], result.ids[rows], axis=1)
        result.raw[rows] = np.take_along_axis(self.raw[rows], result.ids[rows], axis=1)
        tempered = self.edited[rows] / self._selection.temperatures[rows, None].astype(np.float64)
        result.edited_logsumexp[rows] = _rowwise_logsumexp(tempered)
        result.edited_entropy[rows] = _rowwise_entropy(tempered)
        result.edited_deviation[rows] = _rowwise_deviation(self.edited[rows])
        result.num_allowed[rows] = np.count_nonzero(self.edited[rows] > -np.inf, axis=1)


def _edit(raw: Float32, selection: Selection) -> Float32:
    edited = raw.copy()
    for row in range(selection.num_rows):
        part = slice(*selection.edit_offsets[row : row + 2])
        ids = selection.edit_ids[part]
        factors = selection.edit_factors[part]
        old = edited[row, ids]
        edited[row, ids] = np.where(old > 0, old / factors, old * factors) + selection.edit_biases[part]
    return edited


def _top_ids(values: Float32, count: int) -> Int32:
    """Return the ids of the largest values of each row; equal values are in order of id."""
    order = np.argsort(-values, axis=1, kind="stable")
    return np.ascontiguousarray(order[:, :count]).astype(np.int32)


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
