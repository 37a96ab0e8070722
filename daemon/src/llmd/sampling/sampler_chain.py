"""Run one row through the samplers of its request, in order, and draw a token."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from llmd.api.philox import uniform
from llmd.api.random import Purpose
from llmd.api.results import Logprobs
from llmd.api.samplers import Mirostat, SamplerName, SamplingParams
from llmd.sampling import filters, mirostat
from llmd.sampling.shortlist import Moments, Shortlist


class RowContext(Struct, frozen=True):
    """What a draw needs in addition to its row."""

    position: int
    vocab_size: int
    temperature: float
    """Temperature that the row was selected with."""
    logsumexp: float
    """Over ``edited / temperature`` of the whole row."""
    limit: float | None = None
    """Mirostat's state."""
    moments: Moments | None = None
    """Moments of the whole row: the entropy at ``temperature``, the deviation of the edited logits
    themselves."""


class SampledToken(Struct, frozen=True):
    """A token that was drawn."""

    token: int
    limit: float | None = None
    """Mirostat's state after the token."""
    logprobs: Logprobs | None = None
    """Logprobs after sampling, if the request asks for them."""


def is_greedy(params: SamplingParams) -> bool:
    """Return whether the request takes the best token, without a random draw."""
    return params.temperature < filters.LEAST_TEMPERATURE and params.dynamic_temperature is None


def wants_final_logprobs(params: SamplingParams) -> bool:
    """Return whether the request asks for logprobs after sampling."""
    return params.post_sampling and params.logprobs is not None


def certain(token: int, params: SamplingParams) -> Logprobs:
    """Return the logprobs after sampling of a token that was taken without a random draw."""
    listed = (token,) if params.logprobs else ()
    return Logprobs(0.0, listed, (0.0,) * len(listed))


def active_order(params: SamplingParams) -> tuple[SamplerName, ...]:
    """Return the samplers that have an effect, in order."""
    if params.mirostat is not None:
        return ("temperature",)
    changes = {
        "temperature": params.temperature != 1.0 or params.dynamic_temperature is not None,
        "top_n_sigma": params.top_n_sigma > 0,
        "top_k": params.top_k > 0,
        "typ_p": params.typical_p < 1,
        "top_p": params.top_p < 1,
        "min_p": params.min_p > 0,
        "xtc": params.xtc is not None and params.xtc.probability > 0,
    }
    return tuple(name for name in params.order if changes[name])


def selection_temperature(params: SamplingParams) -> float:
    """Return the temperature at which the device's log-sum-exp and entropy are most useful to the request."""
    if is_greedy(params):
        return 1.0
    for name in active_order(params):
        if name in {"top_p", "xtc", "typ_p"}:
            return 1.0
        if name == "temperature":
            return 1.0 if params.dynamic_temperature else params.temperature
    return 1.0


def draw(listed: Shortlist, params: SamplingParams, context: RowContext) -> SampledToken | None:
    """Draw a token; return None if it depends on tokens beyond the list."""
    listed = _with_total(structs.replace(listed, moments=context.moments), context, 1.0)
    for name in active_order(params):
        narrowed = _SAMPLERS[name](listed, params, context)
        if narrowed is None:
            return None
        listed = narrowed
    if params.mirostat is not None:
        return _draw_mirostat(listed, params, params.mirostat, context)
    index = _index(listed, params, context)
    return None if index is None else _sampled(listed, index, params)


def _draw_mirostat(
    listed: Shortlist, params: SamplingParams, steering: Mirostat, context: RowContext
) -> SampledToken | None:
    limit = mirostat.begin(steering) if context.limit is None else context.limit
    narrowed = mirostat.narrow(listed, steering, limit, context.vocab_size)
    if narrowed is None:
        return None
    index = _index(narrowed, params, context)
    probabilities = narrowed.probabilities()
    if index is None or probabilities is None:
        return None
    limit = mirostat.advance(steering, limit, float(probabilities[index]))
    return _sampled(narrowed, index, params, limit)


def _sampled(
    listed: Shortlist, index: int, params: SamplingParams, limit: float | None = None
) -> SampledToken | None:
    """Return the token at an index; None if too few alternatives are known for its logprobs."""
    token, count = int(listed.ids[index]), params.logprobs
    if count is None or not wants_final_logprobs(params):
        return SampledToken(token, limit)
    if len(listed) < count and not listed.ends:
        return None
    probabilities = listed.probabilities()
    assert probabilities is not None, "a token was drawn from them"
    top = probabilities[:count]
    top = top[top > 0]  # probabilities that underflow are last
    logprobs = Logprobs(
        math.log(probabilities[index]), tuple(listed.ids[: len(top)].tolist()), tuple(np.log(top).tolist())
    )
    return SampledToken(token, limit, logprobs)


def _index(listed: Shortlist, params: SamplingParams, context: RowContext) -> int | None:
    """Return the index that the random number of the context selects."""
    probabilities = listed.probabilities()
    if probabilities is None:
        return None
    reached = np.cumsum(probabilities)
    mass = float(reached[-1]) if listed.ends else 1.0
    u = uniform(params.seed, context.position, params.choice, Purpose.SAMPLE)
    index = int(np.searchsorted(reached, u * mass, side="right"))
    return index if index < len(listed) else None


def _temperature(listed: Shortlist, params: SamplingParams, context: RowContext) -> Shortlist | None:
    if params.dynamic_temperature is not None:
        return filters.dynamic_temperature(listed, params.temperature, params.dynamic_temperature)
    return _with_total(listed.divided(params.temperature, None), context, params.temperature)


def _with_total(listed: Shortlist, context: RowContext, temperature: float) -> Shortlist:
    """Add the device's log-sum-exp and entropy, if they are for this temperature and all remaining tokens."""
    if temperature != context.temperature or not math.isfinite(context.logsumexp):
        return listed
    if listed.moments is None or context.moments is None:
        return listed if listed.ends else structs.replace(listed, logsumexp=context.logsumexp)
    moments = structs.replace(listed.moments, entropy=context.moments.entropy)
    return structs.replace(listed, logsumexp=context.logsumexp, moments=moments)


def _xtc(listed: Shortlist, params: SamplingParams, context: RowContext) -> Shortlist | None:
    assert params.xtc is not None, "a sampler without parameters is not active"
    return filters.xtc(listed, params.xtc, uniform(params.seed, context.position, params.choice, Purpose.XTC))


_SAMPLERS: dict[SamplerName, Callable[[Shortlist, SamplingParams, RowContext], Shortlist | None]] = {
    "temperature": _temperature,
    "top_n_sigma": lambda listed, params, _: filters.top_n_sigma(listed, params.top_n_sigma),
    "top_k": lambda listed, params, _: filters.top_k(listed, params.top_k),
    "typ_p": lambda listed, params, _: filters.typical(listed, params.typical_p),
    "top_p": lambda listed, params, _: filters.top_p(listed, params.top_p),
    "min_p": lambda listed, params, _: filters.min_p(listed, params.min_p),
    "xtc": _xtc,
}
