"""``options``: how tokens are drawn, when answers end, how long prompt and answer may be."""

from __future__ import annotations

from msgspec import Struct, structs

from llmd.api.samplers import OLLAMA_ORDER
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.requests.ending import EndChoice
from llmd.requests.fields import RequestFields
from llmd.requests.number import Number
from llmd.requests.sampling import ANY_SEED, MAX_TEMPERATURE, MAX_TOKENS, SamplingChoice, read_sampling

MAX_STOPS = 64

CHANGED = {
    "seed": Number(-ANY_SEED, ANY_SEED, whole=True, absent=-1),
    "temperature": Number(0.0, MAX_TEMPERATURE),
    "top_p": Number(0.0, 1.0),
}
"""Fields that Ollama reads in another way."""

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
    choice = structs.replace(read_sampling(options, logprobs, changed=CHANGED), default_order=OLLAMA_ORDER)
    if choice.top_p == 0.0:  # the smallest nucleus that there is
        return structs.replace(choice, top_k=1, top_p=1.0)
    return choice
