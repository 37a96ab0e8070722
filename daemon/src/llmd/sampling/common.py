"""The common chain for many rows at once: temperature, top-k, top-p and min-p over arrays of candidates.

A row's token does not depend on the other rows: every sum runs along its own candidates, in their order.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api.messages import SamplingParams
from llmd.sampling.chain import active_order
from llmd.sampling.shortlist import MAX_EXPONENT, Float64

NUM_COLUMNS = 6


class CommonChain(Struct, frozen=True):
    """A request's samplers, where these are no others.

    The filters see logits at one temperature, the draw at another, or at the same; ``min_p`` is the logarithm of the
    ratio, before or after top-p.
    """

    filter_temperature: float
    draw_temperature: float
    top_k: float = math.inf
    top_p: float = 1.0
    min_p_before: float = -math.inf
    min_p_after: float = -math.inf

    def columns(self) -> tuple[float, ...]:
        """The parameters as a row of the table that `draw_common` takes."""
        return (
            self.filter_temperature,
            self.draw_temperature,
            self.top_k,
            self.top_p,
            self.min_p_before,
            self.min_p_after,
        )


def common_chain(params: SamplingParams) -> CommonChain | None:
    """The request's samplers as a common chain; None where they are not."""
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


def draw_common(
    edited: NDArray[np.float32], logsumexp: NDArray[np.float32], table: Float64, u: Float64
) -> NDArray[np.intp]:
    """Return the index of the candidate that each row draws, K where that depends on tokens beyond its candidates.

    ``edited`` ``[N, K]``, best first; ``logsumexp`` ``[N]`` over the row, at the filters' temperature where there is a
    top-p, else at the draw's; ``table`` ``[N, NUM_COLUMNS]`` of `CommonChain.columns`; ``u`` ``[N]`` in (0, 1).
    """
    filter_t, draw_t, top_k, top_p, min_p_before, min_p_after = table.T
    best = edited[:, 0].astype(np.float64)
    logits = edited - best[:, None]
    scaled = logits / filter_t[:, None]
    reached = np.cumsum(np.exp(scaled), axis=1)
    kept = np.minimum(_at_least(scaled, min_p_before), top_k)
    if (top_p < 1).any():
        total = _total(reached, kept, logsumexp - best / filter_t)
        kept = np.where(top_p < 1, _cut_at_share(reached, top_p * total), kept)
    count = edited.shape[1]
    kept = np.minimum(kept, _at_least(scaled, min_p_after))
    if (filter_t != draw_t).any():
        reached = np.cumsum(np.exp(logits / draw_t[:, None]), axis=1)
    total = _total(reached, kept, logsumexp - best / draw_t)
    index = np.count_nonzero(reached <= (u * total)[:, None], axis=1)
    drawn: NDArray[np.intp] = np.where((index < kept) & (total > 0.0), index, count)
    return drawn


def _at_least(scaled: Float64, ratio: Float64) -> Float64:
    """How many tokens reach a logarithm of a ratio to the best; K + 1, which is too many, where all candidates do."""
    everything = ratio == -math.inf
    if everything.all():
        return np.full(len(ratio), math.inf)
    count = np.count_nonzero(scaled >= ratio[:, None], axis=1)
    return np.where(everything, math.inf, count + 1.0 * (count == scaled.shape[1]))


def _total(reached: Float64, kept: Float64, over_row: Float64) -> Float64:
    """The weight of what is kept (infinitely much: the row), in units of the best token's; NaN where that ends beyond the candidates.

    ``over_row`` is the logarithm of the whole row's. Rounded to float32, it may be too small even for the candidates.
    """
    count = reached.shape[1]
    last = np.fmin(kept, count).astype(np.intp) - 1
    listed: Float64 = reached[np.arange(len(last)), last]
    if (kept <= count).all():
        return listed
    whole = np.maximum(np.exp(np.minimum(over_row, MAX_EXPONENT)), listed)
    return np.where(kept <= count, listed, np.where(kept == math.inf, whole, math.nan))


def _cut_at_share(reached: Float64, wanted: Float64) -> Float64:
    """How many best tokens reach a weight, K + 1 where more do than there are candidates; NaN where it is NaN."""
    cut: Float64 = 1.0 + np.count_nonzero(reached < wanted[:, None], axis=1)
    return np.where(np.isnan(wanted), math.nan, cut)
