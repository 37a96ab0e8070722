"""Parameters of samplers, and the orders in which samplers run."""

from __future__ import annotations

from typing import Literal

import msgspec

SamplerName = Literal["temperature", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc"]
"""Samplers by their names in llama.cpp."""

DEFAULT_ORDER: tuple[SamplerName, ...] = (
    "temperature",
    "top_n_sigma",
    "min_p",
    "top_k",
    "typ_p",
    "top_p",
    "xtc",
)
"""vLLM's order; samplers that vLLM lacks have the positions that llama.cpp gives them."""

LLAMA_CPP_ORDER: tuple[SamplerName, ...] = (
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)
"""llama.cpp's order: improbable tokens are removed before temperature raises their probability."""

OLLAMA_ORDER: tuple[SamplerName, ...] = (
    "top_k",
    "temperature",
    "top_n_sigma",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
)
"""Ollama's order; top-k, temperature, top-p and min-p are in the order that Ollama runs them."""

NEVER_BIAS = -100.0
"""A ``logit_bias`` of this or less forbids its token."""


class DynamicTemperature(msgspec.Struct, frozen=True):
    """Use a higher temperature when the model is less certain. Source: llama.cpp, ``dynatemp_range``."""

    spread: float
    """The temperature stays within this distance of the request's."""
    exponent: float = 1.0
    """Exponent of the normalised entropy in the temperature."""


class Xtc(msgspec.Struct, frozen=True):
    """Exclude top choices: of the tokens that reach a threshold, keep only the least likely."""

    probability: float
    """Probability of doing this for a token."""
    threshold: float
    """Probability that a token needs to count as a top choice."""


class Mirostat(msgspec.Struct, frozen=True):
    """Keep the surprise of each token near a target. Replaces all other truncation."""

    version: Literal[1, 2]
    """Algorithm of the paper."""
    tau: float = 5.0
    """Target surprise in bits."""
    eta: float = 0.1
    """Learning rate."""


class Dry(msgspec.Struct, frozen=True):
    """Penalise a token that would continue a repetition by ``multiplier * base ** (length - allowed_len)``.

    ``length`` is that of the longest suffix of the text that already occurs, followed by the token, among the
    last ``last_n`` tokens. A repetition does not extend across a breaker.
    """

    multiplier: float
    base: float
    allowed_len: int
    """Shorter repetitions have no penalty."""
    last_n: int
    """Number of last tokens that are searched for repetitions."""
    break_ids: tuple[int, ...] = ()
    """Tokens that are breakers."""
    break_runs: tuple[tuple[int, ...], ...] = ()
    """Runs of tokens that are breakers."""
