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


class SamplingParams(msgspec.Struct, frozen=True):
    """How tokens are drawn: logits are edited, then samplers narrow the choice. Defaults change nothing."""

    seed: int
    """64 bits, always set: the front draws one if the request has none."""
    temperature: float = 1.0
    """Below 1e-5: greedy, the best token, without samplers."""
    top_k: int = 0
    """Keep this many of the most likely tokens; 0: off."""
    top_p: float = 1.0
    """Keep the most likely tokens up to this total probability; 1: off."""
    min_p: float = 0.0
    """Keep tokens at least this likely relative to the best; 0: off."""
    choice: int = 0
    """Choice index of the request; a word of the random counter (`llmd.api.random`)."""
    logprobs: int | None = None
    """Number of alternatives returned with each token's logprob; None: no logprobs. Taken before all
    edits."""
    repetition_penalty: float = 1.0
    """Divides positive logits of tokens of prompt or output, multiplies negative ones."""
    frequency_penalty: float = 0.0
    """Subtracted once for each occurrence of the token in the output."""
    presence_penalty: float = 0.0
    """Subtracted once if the output has the token."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(id, summand); `NEVER_BIAS` or less forbids the id."""
    typical_p: float = 1.0
    """Keep tokens whose surprise is nearest the entropy, up to this total probability; 1: off."""
    top_n_sigma: float = 0.0
    """Keep logits within this many standard deviations of the best; 0: off."""
    dynamic_temperature: DynamicTemperature | None = None
    xtc: Xtc | None = None
    mirostat: Mirostat | None = None
    """Runs after temperature and switches all other samplers off."""
    order: tuple[SamplerName, ...] = DEFAULT_ORDER
    """Order of the samplers; one that is missing does not run."""
    penalty_last_n: int | None = None
    """If set, all three penalties look at this many last tokens of prompt and output instead."""
    dry: Dry | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    """Runs of tokens that the output must not contain."""
    allowed_ids: tuple[int, ...] = ()
    """If not empty, the only tokens that may be drawn."""
    logprob_ids: tuple[int, ...] = ()
    """If not empty, the alternatives of ``logprobs``, in this order, instead of the most likely ones."""
    post_sampling: bool = False
    """Take logprobs after edits and samplers, without alternatives that could not be drawn or
    `logprob_ids`."""
