"""The field ``options``: sampling, when answers end, and how long prompt and answer may be."""

from __future__ import annotations

from msgspec import Struct, structs

from llmd.api.samplers import OLLAMA_ORDER
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.requests.ending import EndChoice
from llmd.requests.fields import RequestFields
from llmd.requests.number import Number
from llmd.requests.sampling import (
    LLAMA_CPP_READERS,
    MAX_TEMPERATURE,
    MAX_TOKENS,
    SamplingChoice,
    read_sampling,
)

MAX_STOPS = 64

CHANGED = LLAMA_CPP_READERS | {"temperature": Number(0.0, MAX_TEMPERATURE)}
"""Fields that Ollama reads in another way."""

# Ollama's defaults, for values that neither the request nor the model's authors set.
FALLBACKS = SamplingChoice(temperature=0.8, top_k=40, top_p=0.9)

REPEAT_LAST_N = 64
"""How many last tokens the penalties look at, unless the request sets the number."""


class Options(Struct, frozen=True):
    """The field ``options``."""

    sampling: SamplingChoice
    end: EndChoice
    window: int | None
    """The most tokens of prompt and answer together."""
    num_keep: int
    """How many tokens at the beginning are kept when a prompt is cut."""


def read_options(options: RequestFields, logprobs: int | None) -> Options:
    """Read the options. Options that concern loading are not read, so that they are reported as ignored."""
    num_predict = options.integer("num_predict", -2, MAX_TOKENS) or 0
    return Options(
        sampling=read_sampling(options, logprobs, changed=CHANGED, default_order=OLLAMA_ORDER),
        end=EndChoice(
            max_tokens=num_predict if num_predict > 0 else None,
            strings=options.strings("stop", MAX_STOPS),
        ),
        window=options.integer("num_ctx", 1, MAX_TOKENS),
        num_keep=options.integer("num_keep", -1, MAX_TOKENS) or 0,
    )


def with_fallbacks(choice: SamplingChoice, defaults: GenerationDefaults) -> SamplingChoice:
    """Return the choice with Ollama's defaults for values that neither it nor the model's authors set."""
    missing = {
        name: getattr(FALLBACKS, name)
        for name in ("temperature", "top_k", "top_p")
        if getattr(choice, name) is None and getattr(defaults, name) is None
    }
    penalises = (choice.repetition_penalty, choice.frequency_penalty, choice.presence_penalty) != (None, 0, 0)
    if penalises and choice.repeat_last_n is None:
        missing["repeat_last_n"] = REPEAT_LAST_N
    return structs.replace(choice, **missing)
