"""RoPE frequencies, and the methods that scale them for longer contexts.

``frequencies(theta, dim)[i] = theta^(-2i / dim)`` radians per position, for ``i`` in ``0 .. dim/2 - 1``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Frequencies = list[float]


def frequencies(theta: float, dim: int) -> Frequencies:
    """Return the plain frequencies. Source: Su et al. 2021, "RoFormer"."""
    return [theta ** (-2 * i / dim) for i in range(dim // 2)]


def proportional(theta: float, dim: int, partial: float, factor: float) -> Frequencies:
    """Return the frequencies of heads of ``dim`` elements, all but the first ``partial`` of them 0.

    Unlike a RoPE of only the first elements, each pair has the frequency that it has in a whole head.
    Source: Gemma Team 2026, "Gemma 4".
    """
    turning = int(partial * dim / 2)
    whole = frequencies(theta, dim)
    return [freq / factor if pair < turning else 0.0 for pair, freq in enumerate(whole)]


def linear(freqs: Frequencies, factor: float) -> Frequencies:
    """Scale positions by ``1 / factor`` (interpolation). Chen et al. 2023, "Extending Context Window"."""
    return [f / factor for f in freqs]


def dynamic_theta(theta: float, dim: int, factor: float, context_len: int, trained_len: int) -> float:
    """Return the base of NTK-aware scaling for ``context_len`` tokens; up to ``trained_len`` it is ``theta``.

    Source: bloc97 and emozilla 2023, as described in Peng et al. 2023, "YaRN", appendix B.1.
    """
    stretch = factor * max(context_len, trained_len) / trained_len - (factor - 1)
    return theta * math.pow(stretch, dim / (dim - 2))


def llama3(
    freqs: Frequencies, factor: float, low_freq_factor: float, high_freq_factor: float, trained_len: int
) -> Frequencies:
    """Divide slow frequencies by ``factor``, keep fast ones, and blend the frequencies in between.

    A frequency is slow if it turns less than ``low_freq_factor`` times in ``trained_len`` tokens, and fast if
    it turns more than ``high_freq_factor`` times. Source: Llama Team 2024, "The Llama 3 Herd of Models".
    """

    def scaled(freq: float) -> float:
        turns = trained_len * freq / (2 * math.pi)
        fast = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor)
        blend = min(1.0, max(0.0, fast))
        return (1 - blend) * freq / factor + blend * freq

    return [scaled(f) for f in freqs]


def yarn(
    theta: float,
    dim: int,
    factor: float,
    beta_fast: float,
    beta_slow: float,
    trained_len: int,
    *,
    truncate: bool,
) -> Frequencies:
    """Scale as `llama3` does, but blend linearly over the index of the pair.

    Blending runs between the pairs that turn ``beta_fast`` and ``beta_slow`` times in ``trained_len`` tokens.
    Source: Peng et al. 2023, "YaRN".
    """

    def pair_turning(turns: float) -> float:
        return dim * math.log(trained_len / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair_turning(beta_fast), pair_turning(beta_slow)
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    width = last - first or 0.001
    blends = (min(1.0, max(0.0, (i - first) / width)) for i in range(dim // 2))
    return [(1 - b) * f + b * f / factor for b, f in zip(blends, frequencies(theta, dim), strict=True)]


def yarn_attention_factor(factor: float, mscale: float = 1.0) -> float:
    """Return YaRN's multiplier for queries and keys: ``0.1 mscale ln(factor) + 1``."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def longrope(freqs: Frequencies, factors: Sequence[float]) -> Frequencies:
    """Divide each frequency by its own factor, found by search. Source: Ding et al. 2024, "LongRoPE"."""
    return [f / divisor for f, divisor in zip(freqs, factors, strict=True)]


def longrope_attention_factor(factor: float, trained_len: int) -> float:
    """Return ``sqrt(1 + ln(factor) / ln(trained_len))`` for a context ``factor`` times the trained length."""
    return math.sqrt(1 + math.log(factor) / math.log(trained_len)) if factor > 1 else 1.0
