"""``options``: how tokens are drawn, when answers end, how long prompt and answer may be."""

from __future__ import annotations

from msgspec import Struct, structs

from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.answering.ending import EndChoice
from llmd.server.answering.sampler_fields import MAX_PENALTY, MAX_TEMPERATURE, read_samplers
from llmd.server.http.request_fields import RequestFields

MAX_TOKENS = (1 << 31) - 1
MAX_STOPS = 64
ANY_SEED = 1 << 256

# What Ollama does where neither the request nor the model's makers say how to sample.
FALLBACKS = SamplingChoice(temperature=0.8, top_k=40, top_p=0.9)

REPEAT_LAST_N = 64
"""How many last tokens the penalties of a request look at, unless it says so itself."""


class Options(Struct, frozen=True):
    """``window``: how many tokens prompt and answer may have; ``num_keep``: how many of a prompt that is cut stay first."""

    sampling: SamplingChoice
    end: EndChoice
    window: int | None
    num_keep: int


def read_options(options: RequestFields, logprobs: int | None) -> Options:
    """What the request says. Options that belong to loading are left unread, and with it named as ignored."""
    num_predict = options.integer("num_predict", -2, MAX_TOKENS) or 0
    return Options(
        sampling=_sampling(options, logprobs),
        end=EndChoice(
            max_tokens=num_predict if num_predict > 0 else None,
            strings=options.strings("stop", MAX_STOPS),
        ),
        window=options.integer("num_ctx", 1, MAX_TOKENS),
        num_keep=options.integer("num_keep", -1, MAX_TOKENS) or 0,
    )


def with_fallbacks(choice: SamplingChoice, defaults: GenerationDefaults) -> SamplingChoice:
    """The choice, with Ollama's values where neither it nor the model's makers say anything."""
    missing = {
        name: getattr(FALLBACKS, name)
        for name in ("temperature", "top_k", "top_p")
        if getattr(choice, name) is None and getattr(defaults, name) is None
    }
    penalises = (choice.repetition_penalty, choice.frequency_penalty, choice.presence_penalty) != (None, 0, 0)
    if penalises and choice.repeat_last_n is None:
        missing["repeat_last_n"] = REPEAT_LAST_N
    return structs.replace(choice, **missing)


def _sampling(options: RequestFields, logprobs: int | None) -> SamplingChoice:
    seed = options.integer("seed", -ANY_SEED, ANY_SEED)
    top_k = options.integer("top_k", -1, MAX_TOKENS)
    top_p = options.number("top_p", 0.0, 1.0)
    if top_p == 0.0:  # the smallest nucleus there is
        top_k, top_p = 1, 1.0
    return SamplingChoice(
        temperature=options.number("temperature", 0.0, MAX_TEMPERATURE),
        top_k=None if top_k is None else max(top_k, 0),
        top_p=top_p,
        min_p=options.number("min_p", 0.0, 1.0),
        seed=None if seed == -1 else seed,
        logprobs=logprobs,
        repetition_penalty=_repeat_penalty(options),
        frequency_penalty=options.number("frequency_penalty", -2.0, 2.0) or 0.0,
        presence_penalty=options.number("presence_penalty", -2.0, 2.0) or 0.0,
        **structs.asdict(read_samplers(options)),
    )


def _repeat_penalty(options: RequestFields) -> float | None:
    penalty = options.number("repeat_penalty", 0.0, MAX_PENALTY)
    if penalty == 0.0:
        raise options.invalid("repeat_penalty", f"above 0 and at most {MAX_PENALTY}; 1 changes nothing")
    return penalty
