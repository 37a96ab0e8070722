"""Draws one token from the candidates of a row: temperature, top-k, top-p, min-p, in this order.

Candidates are the K best of the whole row. Whatever can be decided inside their mass is decided there; only a draw
(or a nucleus) that reaches beyond it fetches the full row, so truncation never changes a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from llmd.api.messages import SamplingParams
from llmd.api.random import Purpose
from llmd.sampling.philox import uniform

LEAST_TEMPERATURE = 1e-5
"""Colder requests are greedy: only equal logits would be left to draw from, and float32 holds no logit divided by less."""

Float64 = NDArray[np.float64]
FetchRow = Callable[[], NDArray[np.float32]]
"""Returns the row's full edited logits float32 ``[vocab]``."""


def is_greedy(params: SamplingParams) -> bool:
    """Whether the best token is taken, without a draw."""
    return params.temperature < LEAST_TEMPERATURE


def draw(
    ids: NDArray[np.int32],
    edited: NDArray[np.float32],
    logsumexp: float,
    params: SamplingParams,
    position: int,
    fetch_row: FetchRow,
) -> int:
    """Return the token at ``position``.

    ``ids`` and ``edited`` are the candidates, best first; ``logsumexp`` is that of ``edited / temperature`` over
    the vocabulary. Where it is not finite, neither is a logit: there is no distribution, and the best is taken.
    """
    if is_greedy(params) or not math.isfinite(logsumexp):
        return int(ids[0])
    u = uniform(params.seed, position, params.choice, Purpose.SAMPLE)
    chosen = _pick(_probabilities(edited, params.temperature, logsumexp), params, u, complete=False)
    if chosen is not None:
        return int(ids[chosen])
    row = fetch_row()
    order = np.argsort(-row, kind="stable")
    best = row[order]
    # Not the device's log-sum-exp: it is rounded to float32, and the worst token would get what the row lacks to 1.
    whole = _probabilities(best, params.temperature, float(best[0]) / params.temperature)
    chosen = _pick(whole, params, u, complete=True)
    assert chosen is not None, "the full row always holds the draw"
    return int(order[chosen])


def _probabilities(best: NDArray[np.float32], temperature: float, logsumexp: float) -> Float64:
    """Probabilities of the best tokens; where ``logsumexp`` is too small for them, their shares."""
    probabilities = np.exp(best.astype(np.float64) / temperature - logsumexp)
    shares: Float64 = probabilities / max(1.0, float(np.sum(probabilities)))
    return shares


def _pick(probabilities: Float64, params: SamplingParams, u: float, *, complete: bool) -> int | None:
    """Return the index that ``u`` falls on among what the filters keep.

    ``probabilities`` are descending: the whole row if ``complete``, else its beginning; then None means that the
    answer lies beyond it.
    """
    found = (_top_k(probabilities, params), _top_p(probabilities, params), _min_p(probabilities, params))
    bounds = [bound for bound in found if bound is not None]
    if not complete and _cuts_beyond(params, len(probabilities), cut_known=bool(bounds)):
        return None
    kept = min(bounds, default=len(probabilities))
    reached = np.cumsum(probabilities[:kept])
    mass = float(reached[-1]) if complete or bounds else 1.0
    index = int(np.searchsorted(reached, u * mass, side="right"))
    return index if index < kept else None


def _cuts_beyond(params: SamplingParams, count: int, *, cut_known: bool) -> bool:
    """Whether what the filters keep, and so its mass, depends on more than the first ``count`` tokens."""
    if params.top_k > count and params.top_p < 1:
        return True  # top-p takes its share of the top-k's mass
    return not cut_known and (params.top_k > 0 or params.top_p < 1 or params.min_p > 0)


def _top_k(probabilities: Float64, params: SamplingParams) -> int | None:
    return params.top_k if 0 < params.top_k <= len(probabilities) else None


def _top_p(probabilities: Float64, params: SamplingParams) -> int | None:
    """The smallest set of best tokens whose share of the top-k's mass reaches ``top_p``.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
    """
    if params.top_p >= 1:
        return None
    top_k = _top_k(probabilities, params)
    whole = 1.0 if top_k is None else float(np.sum(probabilities[:top_k]))
    reached = np.cumsum(probabilities[:top_k]) >= params.top_p * whole
    return int(np.argmax(reached)) + 1 if reached.any() else None


def _min_p(probabilities: Float64, params: SamplingParams) -> int | None:
    """Tokens at least ``min_p`` times as likely as the best one.

    Source: Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs".
    """
    if params.min_p == 0:
        return None
    kept = int(np.count_nonzero(probabilities >= params.min_p * probabilities[0]))
    return kept if kept < len(probabilities) else None
