"""The common samplers (temperature, top-k, top-p, min-p) for many rows at once, on arrays of candidates.

A row's token does not depend on the other rows: each sum runs over the row's own candidates, in order.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api.messages import SamplingParams
from llmd.sampling.sampler_chain import active_order
from llmd.sampling.shortlist import MAX_EXPONENT, Float64

NUM_COLUMNS = 6


class CommonChain(Struct, frozen=True):
    """Parameters of a request that uses only the common samplers."""

    filter_temperature: float
    """Temperature of the logits that top-p and min-p see."""
    draw_temperature: float
    """Temperature of the logits that the token is drawn from."""
    top_k: float = math.inf
    top_p: float = 1.0
    min_p_before: float = -math.inf
    """Logarithm of the ratio of a min-p before top-p; -inf: none."""
    min_p_after: float = -math.inf
    """Logarithm of the ratio of a min-p after top-p; -inf: none."""

    def columns(self) -> tuple[float, ...]:
        """Return the parameters as a row of the table for `CommonRows`."""
        return (
            self.filter_temperature,
            self.draw_temperature,
            self.top_k,
            self.top_p,
            self.min_p_before,
            self.min_p_after,
        )


def common_chain(params: SamplingParams) -> CommonChain | None:
    """Return the request's samplers as a common chain; None if they are not one."""
    order = active_order(params)
    if (
        params.mirostat
        or params.dynamic_temperature
        or not {"temperature", "top_k", "top_p", "min_p"}.issuperset(order)
    ):
        return None
    place = {name: index for index, name in enumerate(order)}
    narrowing = {
        name: place[name] > place.get("temperature", -1) for name in ("top_p", "min_p") if name in place
    }
    if len(set(narrowing.values())) > 1 and params.temperature != 1.0:
        return None  # top-p and min-p see different temperatures
    if place.get("top_k", -1) > place.get("top_p", len(order)):
        return None
    draw_temperature = params.temperature if "temperature" in place else 1.0
    min_p = math.log(params.min_p) if "min_p" in place else -math.inf
    after = "min_p" in place and place["min_p"] > place.get("top_p", len(order))
    return CommonChain(
        filter_temperature=1.0 if False in narrowing.values() else draw_temperature,
        draw_temperature=draw_temperature,
        top_k=float(params.top_k) if "top_k" in place else math.inf,
        top_p=params.top_p if "top_p" in place else 1.0,
        min_p_before=-math.inf if after else min_p,
        min_p_after=min_p if after else -math.inf,
    )


class CommonRows:
    """Rows of the common chain, prepared for their draws before the device returns its results."""

    def __init__(self, table: Float64, u: Float64) -> None:
        """``table`` ``[N, NUM_COLUMNS]`` of `CommonChain.columns`; ``u`` ``[N]`` in (0, 1)."""
        filter_t, draw_t, top_k, top_p, min_p_before, min_p_after = table.T
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


def _at_least(scaled: Float64, ratio: Float64) -> Float64:
    """Count the tokens with at least this log ratio to the best; K + 1 (too many) if all candidates do."""
    count = _count(scaled >= ratio)
    return np.where(ratio[:, 0] == -math.inf, math.inf, count + (count == scaled.shape[1]))


def _count(chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count the chosen tokens of each row; for few rows, `numpy.count_nonzero` takes twice as long."""
    count: NDArray[np.intp] = np.add.reduce(chosen, axis=1, dtype=np.intp)
    return count
