"""Samplers with parameters of their own, and the order in which samplers narrow what a token is drawn from."""

from __future__ import annotations

from typing import Literal

import msgspec

SamplerName = Literal["temperature", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc"]
"""Samplers by the names that llama.cpp gives them."""

DEFAULT_ORDER: tuple[SamplerName, ...] = (
    "temperature",
    "top_n_sigma",
    "min_p",
    "top_k",
    "typ_p",
    "top_p",
    "xtc",
)
"""vLLM's order, with the samplers that vLLM lacks where llama.cpp has them."""

LLAMA_CPP_ORDER: tuple[SamplerName, ...] = (
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)
"""llama.cpp's order: what is improbable goes before temperature makes it less so."""

OLLAMA_ORDER: tuple[SamplerName, ...] = (
    "top_k",
    "temperature",
    "top_n_sigma",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
)
"""Ollama's order of top-k, temperature, top-p and min-p."""

NEVER_BIAS = -100.0
"""A ``logit_bias`` that is this low forbids its token."""


class DynamicTemperature(msgspec.Struct, frozen=True):
    """Temperatures within ``spread`` of the request's, the higher the less certain the model is.

    ``exponent`` bends the way from entropy to temperature. Source: llama.cpp, ``dynatemp_range``.
    """

    spread: float
    exponent: float = 1.0


class Xtc(msgspec.Struct, frozen=True):
    """With ``probability``, all tokens of at least ``threshold`` but the least likely of them are excluded."""

    probability: float
    threshold: float


class Mirostat(msgspec.Struct, frozen=True):
    """Keeps the surprise of each token near ``tau`` bits at rate ``eta``, in place of every other truncation."""

    version: Literal[1, 2]
    tau: float = 5.0
    eta: float = 0.1


class Dry(msgspec.Struct, frozen=True):
    """Penalises the token that would go on with a repetition: ``multiplier * base ** (length - allowed_len)``.

    ``length`` is that of the longest end of the text, from ``allowed_len`` on, that stands among the last ``last_n``
    tokens already, followed by that token. No repetition reaches over a breaker: a token of ``break_ids``, or a run of
    tokens in ``break_runs``.
    """

    multiplier: float
    base: float
    allowed_len: int
    last_n: int
    break_ids: tuple[int, ...] = ()
    break_runs: tuple[tuple[int, ...], ...] = ()
