"""The distribution that a request draws from, by the definition of each sampler, over a whole vocabulary.

Each sampler is written out over sets of tokens, without a sorted list, so that it shares no code and no
shortcut with the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from llmd.api.messages import SamplingParams
from llmd.api.step import StepResult

VOCAB = 200
Distribution = dict[int, float]


def make_row(seed: int, spread: float = 2.0) -> np.ndarray:
    return (spread * np.random.default_rng(seed).standard_normal(VOCAB)).astype(np.float32)


def step_result(rows: Sequence[np.ndarray], temperatures: Sequence[float], kept: int = 64) -> StepResult:
    """Return what a device returns for rows of edited logits."""
    logits = np.stack(rows)
    ids = np.argsort(-logits, axis=1, kind="stable")[:, :kept].astype(np.int32)
    edited = np.take_along_axis(logits, ids, axis=1)
    scaled = logits.astype(np.float64) / np.array(temperatures, np.float64)[:, None]
    top = scaled.max(axis=1, keepdims=True)
    logsumexp = np.log(np.exp(scaled - top).sum(axis=1)) + top[:, 0]
    p = np.exp(scaled - logsumexp[:, None])
    allowed = logits > -np.inf
    entropy = -np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0.0).sum(axis=1)
    none = np.zeros((len(rows), 0))
    return StepResult(
        ids=ids,
        edited=edited,
        raw=edited,
        raw_logsumexp=logsumexp.astype(np.float32),
        edited_logsumexp=logsumexp.astype(np.float32),
        edited_entropy=entropy.astype(np.float32),
        edited_deviation=np.array([deviation(row) for row in logits], np.float32),
        num_allowed=np.count_nonzero(allowed, axis=1).astype(np.int32),
        target_raw=np.full(len(rows), np.nan, np.float32),
        top_ids=none.astype(np.int32),
        top_raw=none.astype(np.float32),
    )


def deviation(row: np.ndarray) -> float:
    allowed = row[row > -np.inf]
    return float(np.std(allowed, dtype=np.float64)) if allowed.size else 0.0


def softmax(logits: Distribution) -> Distribution:
    top = max(logits.values())
    weights = {token: math.exp(value - top) for token, value in logits.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def smallest_set(ranked: list[int], p: Distribution, share: float) -> set[int]:
    """Return the first tokens of a ranking that reach a share in total."""
    kept: set[int] = set()
    while ranked and math.fsum(p[token] for token in kept) < share:
        kept.add(ranked.pop(0))
    return kept


def best_first(logits: Distribution) -> list[int]:
    return sorted(logits, key=lambda token: (-logits[token], token))


def entropy(p: Distribution) -> float:
    return -math.fsum(x * math.log(x) for x in p.values() if x)


def narrow(name: str, logits: Distribution, params: SamplingParams, *, excludes: bool) -> Distribution:
    """Apply one sampler; ``excludes``: XTC's random number makes it exclude tokens."""
    p = softmax(logits)
    best = max(logits.values())
    kept = set(logits)
    if name == "temperature":
        return {token: value / temperature(p, params) for token, value in logits.items()}
    if name == "top_k" and params.top_k:
        kept = set(best_first(logits)[: params.top_k])
    if name == "top_p" and params.top_p < 1:
        kept = smallest_set(best_first(logits), p, params.top_p)
    if name == "min_p":
        kept = {token for token in logits if p[token] >= params.min_p * max(p.values())}
    if name == "typ_p" and params.typical_p < 1:
        middle = entropy(p)
        far = sorted(best_first(logits), key=lambda token: abs(-math.log(p[token]) - middle))
        kept = smallest_set(far, p, params.typical_p)
    if name == "top_n_sigma" and params.top_n_sigma > 0:
        mean = math.fsum(logits.values()) / len(logits)
        sigma = math.sqrt(math.fsum((z - mean) ** 2 for z in logits.values()) / len(logits))
        kept = {token for token, z in logits.items() if z >= best - params.top_n_sigma * sigma}
    if name == "xtc" and params.xtc and excludes:
        likely = [token for token in best_first(logits) if p[token] >= params.xtc.threshold]
        kept -= set(likely[:-1])
    return {token: logits[token] for token in kept}


def temperature(p: Distribution, params: SamplingParams) -> float:
    dynamic = params.dynamic_temperature
    if dynamic is None or len(p) == 1:
        return params.temperature
    low, high = max(0.0, params.temperature - dynamic.spread), params.temperature + dynamic.spread
    return float(low + (high - low) * (entropy(p) / math.log(len(p))) ** dynamic.exponent)


def closed_form(row: np.ndarray, params: SamplingParams) -> np.ndarray:
    """Return the probabilities float64 ``[vocab]``."""
    chance = params.xtc.probability if params.xtc and "xtc" in params.order else 0.0
    result = np.zeros(len(row))
    for excludes, weight in ((True, chance), (False, 1.0 - chance)):
        logits = {token: float(z) for token, z in enumerate(row) if z > -np.inf}
        for name in params.order:
            logits = narrow(name, logits, params, excludes=excludes)
        for token, probability in softmax(logits).items():
            result[token] += weight * probability
    return result
