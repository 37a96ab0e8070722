"""Draws of tokens: what a selection asks of a device, their definition, and the definition in NumPy.

The token of a row of kind `SAMPLED` is defined for its edited logits z and the columns of ``Draws.table``, in
real numbers:

1. The tokens are in order: the edited logit descending, then the id ascending. z₀ is the best logit. If it is
   not finite, the token is the first one, and the rest does not apply.
2. Each token i has two weights: f(i) = exp((z_i - z₀) / filter temperature) and
   d(i) = exp((z_i - z₀) / draw temperature). All sums of weights run in this order, from the best token.
3. Top-k keeps the first ``top_k`` tokens. Of these, min-p before top-p keeps those with
   (z_i - z₀) / filter temperature >= ``min_p_before``.
4. Top-p below 1 keeps the fewest first tokens whose sum of f reaches ``top_p`` times the sum of f over all
   tokens kept so far.
5. Min-p after top-p keeps those with (z_i - z₀) / filter temperature >= ``min_p_after``.
6. The token is the first one whose sum of d exceeds u times the sum of d over all kept tokens. u is the
   number of `llmd.api.random` for seed, position and choice, with the purpose ``SAMPLE``.

The engine believes the device. `draw_whole_rows` computes this in float64. A device with another precision
may differ from it only where u or a filter falls within rounding of the border between two tokens.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

HOST, GREEDY, SAMPLED = range(3)
"""Kinds of rows. Of a row of kind `HOST` the device returns candidates, and the host draws. A row of kind
`GREEDY` takes the best edited token: of equal ones, the lowest id. `SAMPLED` is defined above."""

NUM_COLUMNS = 6
"""Columns of `Draws.table`: filter temperature, draw temperature, top_k, top_p, min_p_before, min_p_after."""

MAX_EXPONENT = 700.0
"""Larger exponents overflow; no row has that much more weight than its best token."""


class Draws(msgspec.Struct, frozen=True):
    """How the tokens of the ``N`` output rows of a selection are drawn."""

    kinds: NDArray[np.int8]
    """``[N]``: `HOST`, `GREEDY` or `SAMPLED`."""
    table: Float64
    """``[N, NUM_COLUMNS]``: the parameters of `SAMPLED` rows. Temperatures are above 0; ``top_k`` is at least
    1, inf: off; ``top_p`` is above 0, 1: off; both min-p are logarithms of the ratio to the best token, at
    most 0, -inf: off."""
    seeds: NDArray[np.uint64]
    """``[N]``: seeds of `SAMPLED` rows."""
    positions: NDArray[np.uint64]
    """``[N]``: positions of the tokens that are drawn."""
    choices: NDArray[np.uint64]
    """``[N]``: choices of `SAMPLED` rows."""
    token_only: NDArray[np.bool_]
    """``[N]``: only the token of the row is needed. All other fields of its result are undefined, so that a
    device need not compute them; `Stage.rows` and `Stage.raw_rows` return the row as always. Never set for
    `HOST`."""


class CommonRows:
    """Rows of kind `SAMPLED`, prepared for their draws from candidates before the device returns these.

    A row's token does not depend on the other rows: each sum runs over the row's own candidates, in order.
    """

    def __init__(self, table: Float64, u: Float64) -> None:
        """``table`` ``[N, NUM_COLUMNS]`` as in `Draws`; ``u`` ``[N]`` in (0, 1)."""
        filter_t, draw_t, top_k, top_p, min_p_before, min_p_after = table.T
        self._table = table
        self._u = u
        self._filter_t = filter_t[:, None]
        self._draw_t = draw_t[:, None]
        self._same_t = bool((filter_t == draw_t).all())
        self._top_k = top_k
        self._top_p = None if (top_p >= 1).all() else top_p
        self._min_p_before = None if (min_p_before == -math.inf).all() else min_p_before[:, None]
        self._min_p_after = None if (min_p_after == -math.inf).all() else min_p_after[:, None]
        self._all_open = bool(
            self._top_p is None
            and self._min_p_before is None
            and self._min_p_after is None
            and (top_k == math.inf).all()
        )
        self._rows = np.arange(len(u))

    def draw(self, edited: NDArray[np.float32], logsumexp: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return the index of the candidate that each row draws; K if it depends on tokens beyond them.

        ``edited`` ``[N, K]``: best first. ``logsumexp`` ``[N]``: over the whole row, at the filter
        temperature if the row has a top-p, else at the draw temperature. Both are finite in the first
        candidate.
        """
        best = edited[:, :1].astype(np.float64)
        logits = edited - best
        over_row = logsumexp[:, None] - best / (self._draw_t if self._top_p is None else self._filter_t)
        heavy = np.exp(np.minimum(over_row[:, 0], MAX_EXPONENT))
        scaled = logits / self._filter_t
        reached = np.cumsum(np.exp(scaled), axis=1)
        kept = self._kept(scaled, reached, heavy)
        if not self._same_t:
            reached = np.cumsum(np.exp(logits / self._draw_t), axis=1)
        total = self._total(reached, kept, heavy)
        index = _count(reached <= (self._u * total)[:, None])
        # A comparison with NaN is false.
        drawn: NDArray[np.intp] = np.where((index < kept) & (total > 0.0), index, edited.shape[1])
        return drawn

    def draw_whole(self, row: int, edited: NDArray[np.float32]) -> int:
        """Return the token that a row draws, given all of its edited logits float32 ``[vocab]``."""
        ids = best_first(edited)
        place = slice(row, row + 1)
        return int(ids[draw_whole_rows(edited[None, ids], self._table[place], self._u[place])[0]])

    def _kept(self, scaled: Float64, reached: Float64, heavy: Float64) -> Float64:
        """Return how many of the best tokens the filters keep; NaN: unknown, inf: no filter removes any."""
        kept: Float64 = self._top_k
        if self._min_p_before is not None:
            kept = np.minimum(kept, _at_least(scaled, self._min_p_before))
        if self._top_p is not None:
            wanted = self._top_p * self._total(reached, kept, heavy)
            # K + 1 if the candidates do not reach it.
            cut: Float64 = np.where(np.isnan(wanted), math.nan, _count(reached < wanted[:, None]) + 1)
            kept = np.where(self._top_p >= 1, kept, cut)
        if self._min_p_after is not None:
            kept = np.minimum(kept, _at_least(scaled, self._min_p_after))
        return kept

    def _total(self, reached: Float64, kept: Float64, heavy: Float64) -> Float64:
        """Return the weight of the kept tokens relative to the best; NaN if there are more than candidates.

        ``heavy`` is the weight of the whole row. Rounded to float32, it may be less than that of the
        candidates.
        """
        if self._all_open:
            everything: Float64 = np.maximum(heavy, reached[:, -1])
            return everything
        count = reached.shape[1]
        listed: Float64 = reached[self._rows, np.fmin(kept, count).astype(np.intp) - 1]
        whole = np.where(kept == math.inf, np.maximum(heavy, listed), math.nan)
        return np.where(kept <= count, listed, whole)


def draw_whole_rows(ordered: NDArray[np.float32], table: Float64, u: Float64) -> NDArray[np.intp]:
    """Return the index of the token that each row draws, given all of its logits: the definition.

    ``ordered`` ``[N, vocab]``: all edited logits of each row, in the order of `best_first`. ``table`` and
    ``u``: as in `CommonRows`.
    """
    filter_t, draw_t, top_k, top_p, min_p_before, min_p_after = np.split(table, NUM_COLUMNS, axis=1)
    with np.errstate(invalid="ignore"):  # of rows without a finite best logit; they draw index 0
        logits = ordered - ordered[:, :1].astype(np.float64)
    scaled = logits / filter_t
    kept = np.minimum(top_k[:, 0], _count(scaled >= min_p_before))
    reached = np.cumsum(np.exp(scaled), axis=1)
    wanted = top_p[:, 0] * _sum_of_first(reached, kept)
    kept = np.where(top_p[:, 0] < 1, np.minimum(kept, _count(reached < wanted[:, None]) + 1), kept)
    kept = np.minimum(kept, _count(scaled >= min_p_after))
    reached = np.cumsum(np.exp(logits / draw_t), axis=1)
    return _count(reached <= (u * _sum_of_first(reached, kept))[:, None])


def best_first(logits: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the token ids of rows float32 ``[..., vocab]``: the largest logit first, equal ones by id."""
    # One sort of integers is many times faster than a stable sort of floats. The high bits are the complement
    # of an order-preserving map of the logit, the low bits the id. Adding zero makes -0.0 equal to 0.0.
    bits = (logits + np.float32(0.0)).view(np.uint32)
    descending = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    keys = (descending.astype(np.uint64) << np.uint64(32)) | np.arange(logits.shape[-1], dtype=np.uint64)
    keys.sort(axis=-1)
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)


def _sum_of_first(reached: Float64, kept: Float64) -> Float64:
    """Return the sum over the first ``kept`` tokens of each row."""
    sums: Float64 = np.take_along_axis(reached, kept[:, None].astype(np.intp) - 1, axis=1)[:, 0]
    return sums


def _at_least(scaled: Float64, ratio: Float64) -> Float64:
    """Count the tokens with at least this log ratio to the best; K + 1 (too many) if all candidates do."""
    count = _count(scaled >= ratio)
    return np.where(ratio[:, 0] == -math.inf, math.inf, count + (count == scaled.shape[1]))


def _count(chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count the chosen tokens of each row; for few rows, `numpy.count_nonzero` takes twice as long."""
    count: NDArray[np.intp] = np.add.reduce(chosen, axis=1, dtype=np.intp)
    return count
