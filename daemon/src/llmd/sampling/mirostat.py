"""Mirostat: truncation that steers towards a target surprise. Its state is one number.

Source: Basu et al. 2021, "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity"; both
versions with the constants of llama.cpp.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from llmd.api.samplers import Mirostat
from llmd.sampling.shortlist import Shortlist

ESTIMATED_FROM = 100
"""Number of best tokens from which version 1 estimates the exponent of Zipf's law."""

_STATE = struct.Struct("<d")


def begin(params: Mirostat) -> float:
    """Return the state before the first token: the largest surprise, in bits, that a token may have."""
    return 2.0 * params.tau


def pack(limit: float) -> bytes:
    """Encode the state for `TokenOutput.state`."""
    return _STATE.pack(limit)


def unpack(params: Mirostat, state: bytes) -> float:
    """Decode the state that was sent with the last token; empty: the state before the first token."""
    return float(_STATE.unpack(state)[0]) if state else begin(params)


def narrow(listed: Shortlist, params: Mirostat, limit: float, vocab_size: int) -> Shortlist | None:
    """Return the tokens to draw from; None if they are not all known."""
    return _by_rank(listed, limit, vocab_size) if params.version == 1 else _by_surprise(listed, limit)


def advance(params: Mirostat, limit: float, probability: float) -> float:
    """Return the state after a token that was drawn with this probability."""
    return limit - params.eta * (-math.log2(probability) - params.tau)


def _by_surprise(listed: Shortlist, limit: float) -> Shortlist | None:
    """Version 2: keep the tokens with a surprise of at most ``limit`` bits, and always the best token."""
    probabilities = listed.probabilities()
    if probabilities is None:
        return None
    # Compare logarithms: they also represent a limit of thousands of bits, or below zero.
    with np.errstate(divide="ignore"):
        kept = int(np.count_nonzero(-np.log2(probabilities) <= limit))
    if kept < len(listed):
        return listed.first(max(kept, 1))
    return listed if listed.ends else None


def _by_rank(listed: Shortlist, limit: float, vocab_size: int) -> Shortlist | None:
    """Version 1: keep the number of best tokens that corresponds to ``limit`` under Zipf's law."""
    if len(listed) < ESTIMATED_FROM and not listed.ends:
        return None
    count = _count(_zipf_exponent(listed), limit, vocab_size)
    if count <= len(listed):
        return listed.first(count)
    return listed if listed.ends else None


def _zipf_exponent(listed: Shortlist) -> float:
    best = listed.logits[:ESTIMATED_FROM]
    ranks = np.arange(1, len(best), dtype=np.float64)
    steps = np.log((ranks + 1) / ranks)
    total = float(np.sum(steps * steps))
    return float(np.sum(steps * (best[:-1] - best[1:]))) / total if total else 0.0


def _count(exponent: float, limit: float, vocab_size: int) -> int:
    """Return (ε · 2^limit / (1 - N^-ε))^(1/s) with ε = s - 1, clamped to 1 .. N, computed in logarithms."""
    most = math.log(vocab_size)
    excess = exponent - 1.0
    factor = excess / -math.expm1(-excess * most) if excess and most else 1.0 / max(most, 1.0)
    wanted = math.log(factor) + limit * math.log(2.0)
    if wanted >= exponent * most:
        return vocab_size
    return max(1, int(math.exp(wanted / exponent))) if exponent > 0.0 else 1
