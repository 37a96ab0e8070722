"""One row through the samplers of its request, in their order, to a token."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from llmd.api.messages import Logprobs, SamplingParams
from llmd.api.random import Purpose
from llmd.api.samplers import Mirostat, SamplerName
from llmd.sampling import filters, mirostat
from llmd.sampling.philox import uniform
from llmd.sampling.shortlist import Moments, Shortlist


class RowContext(Struct, frozen=True):
    """What a draw needs beside its row. ``logsumexp`` is that of ``edited / temperature`` over the whole row.

    ``limit`` is mirostat's state. ``moments`` are those of the whole row, the entropy at ``temperature``, the deviation of
    its edited logits as they are.
    """

    position: int
    vocab_size: int
    temperature: float
    logsumexp: float
    limit: float | None = None
    moments: Moments | None = None


class SampledToken(Struct, frozen=True):
    """A token, mirostat's state after it, and the logprobs of what it was drawn from, where the request wants these."""

    token: int
    limit: float | None = None
    logprobs: Logprobs | None = None


def is_greedy(params: SamplingParams) -> bool:
    """Whether the best token is taken, without a draw."""
    return params.temperature < filters.LEAST_TEMPERATURE and params.dynamic_temperature is None


def wants_final_logprobs(params: SamplingParams) -> bool:
    """Whether logprobs are those of what a token is drawn from."""
    return params.post_sampling and params.logprobs is not None


def certain(token: int, params: SamplingParams) -> Logprobs:
    """The final logprobs of a token that is taken without a draw."""
    listed = (token,) if params.logprobs else ()
    return Logprobs(0.0, listed, (0.0,) * len(listed))


def active_order(params: SamplingParams) -> tuple[SamplerName, ...]:
    """The samplers that change something, in their order."""
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
    """The temperature at which the device's log-sum-exp and entropy serve the request best."""
    if is_greedy(params):
        return 1.0
    for name in active_order(params):
        if name in {"top_p", "xtc", "typ_p"}:
            return 1.0
        if name == "temperature":
            return 1.0 if params.dynamic_temperature else params.temperature
    return 1.0


def draw(listed: Shortlist, params: SamplingParams, context: RowContext) -> SampledToken | None:
    """Return a token; None where it depends on tokens beyond the list."""
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
    """The token at an index of what is left; None where as many alternatives as are wanted are not known."""
    token, count = int(listed.ids[index]), params.logprobs
    if count is None or not wants_final_logprobs(params):
        return SampledToken(token, limit)
    if len(listed) < count and not listed.ends:
        return None
    probabilities = listed.probabilities()
    assert probabilities is not None, "a token was drawn from them"
    top = probabilities[:count]
    top = top[top > 0]  # what underflows comes last
    logprobs = Logprobs(
        math.log(probabilities[index]), tuple(listed.ids[: len(top)].tolist()), tuple(np.log(top).tolist())
    )
    return SampledToken(token, limit, logprobs)


def _index(listed: Shortlist, params: SamplingParams, context: RowContext) -> int | None:
    """Where the random number of the context falls."""
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
    """With the device's log-sum-exp and entropy, where these are of this temperature and of all tokens in play."""
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
