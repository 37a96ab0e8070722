"""Samplers that filter tokens. Each returns None if the result depends on tokens beyond the shortlist."""

from __future__ import annotations

import math

import numpy as np

from llmd.api.samplers import DynamicTemperature, Xtc
from llmd.sampling.shortlist import Shortlist

LEAST_TEMPERATURE = 1e-5
"""Requests with a lower temperature are greedy: only equal logits would be left to draw from, and divided
logits would overflow float32."""

XTC_MOST = 0.5
"""Two tokens cannot both be more likely than this, so that a higher threshold excludes nothing."""


def top_k(listed: Shortlist, count: int) -> Shortlist | None:
    """Keep the best ``count`` tokens."""
    if count <= len(listed):
        return listed.first(count)
    return listed if listed.ends else None


def top_p(listed: Shortlist, share: float) -> Shortlist | None:
    """Keep the smallest set of best tokens with a total probability of at least ``share``.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
    """
    probabilities = listed.probabilities()
    if probabilities is None:
        return None
    reached = np.cumsum(probabilities) >= share
    if reached.any():
        return listed.first(int(np.argmax(reached)) + 1)
    return listed if listed.ends else None


def min_p(listed: Shortlist, ratio: float) -> Shortlist | None:
    """Keep the tokens that are at least ``ratio`` times as likely as the best one.

    Source: Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs".
    """
    return _at_least(listed, listed.logits[0] + math.log(ratio))


def top_n_sigma(listed: Shortlist, count: float) -> Shortlist | None:
    """Keep the tokens with logits within ``count`` standard deviations of the best one.

    Source: Tang et al. 2024, "Top-nσ: Not All Logits Are You Need".
    """
    deviation = listed.deviation()
    return None if deviation is None else _at_least(listed, listed.logits[0] - count * deviation)


def typical(listed: Shortlist, share: float) -> Shortlist | None:
    """Keep the tokens with a surprise nearest the entropy, until their total probability reaches ``share``.

    Source: Meister et al. 2023, "Locally Typical Sampling".
    """
    surprises, entropy = listed.surprises(), listed.entropy()
    if surprises is None or entropy is None:
        return None
    distance = np.abs(surprises - entropy)
    nearest = np.argsort(distance, kind="stable")
    if not listed.ends:
        # Tokens beyond the list have a larger surprise than its last token. If that is above the entropy,
        # they are farther from the entropy than all tokens that are as near as the last one.
        if surprises[-1] < entropy:
            return None
        nearest = nearest[distance[nearest] <= distance[-1]]
    reached = np.cumsum(np.exp(-surprises[nearest])) >= share
    if reached.any():
        return listed.pick(np.sort(nearest[: int(np.argmax(reached)) + 1]))
    return listed if listed.ends else None


def xtc(listed: Shortlist, params: Xtc, u: float) -> Shortlist | None:
    """Exclude top choices if the random number ``u`` is at most the probability.

    Source: p-e-w 2024, "Exclude Top Choices", as in llama.cpp.
    """
    if u > params.probability or params.threshold > XTC_MOST:
        return listed
    probabilities = listed.probabilities()
    if probabilities is None:
        return None
    likely = int(np.count_nonzero(probabilities >= params.threshold))
    if likely == len(listed) and not listed.ends:
        return None
    return listed if likely < 2 else listed.without_first(likely - 1)


def dynamic_temperature(
    listed: Shortlist, temperature: float, params: DynamicTemperature
) -> Shortlist | None:
    """Divide by a temperature within ``spread`` of ``temperature`` that grows with the entropy.

    Source: llama.cpp, ``dynatemp_range``.
    """
    count, entropy = listed.count(), listed.entropy()
    if count is None or entropy is None:
        return None
    if count == 1:
        return listed
    uncertainty = min(1.0, max(0.0, entropy / math.log(count)))
    low, high = max(0.0, temperature - params.spread), temperature + params.spread
    found = low + (high - low) * uncertainty**params.exponent
    return listed.first(1) if found < LEAST_TEMPERATURE else listed.divided(found, None)


def _at_least(listed: Shortlist, logit: float) -> Shortlist | None:
    kept = int(np.count_nonzero(listed.logits >= logit))
    if kept < len(listed):
        return listed.first(kept)
    return listed if listed.ends else None
