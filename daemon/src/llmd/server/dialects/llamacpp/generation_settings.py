"""``generation_settings``: all settings of an answer, under llama-server's names."""

from __future__ import annotations

from typing import Any

import msgspec

from llmd.api.samplers import DynamicTemperature, Mirostat, Xtc
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.requests.named_tokens import ALL_TOKENS, DryChoice
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.llamacpp.fields import Settings

RANDOM_SEED = (1 << 32) - 1
"""What llama-server reports if a request has no seed."""

OFF_SIGMA = -1.0
WHOLE_CONTEXT = -1
"""How llama-server writes that all tokens of prompt and answer count."""

_NO_DYNAMIC_TEMPERATURE = DynamicTemperature(0.0)
_NO_XTC = Xtc(0.0, 0.1)
_DEFAULT_MIROSTAT = Mirostat(2)
_NO_DRY = DryChoice(0.0)

_FIXED = {
    "n_keep": 0,
    "n_discard": 0,
    "min_keep": 0,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "speculative.n_max": 0,
    "speculative.n_min": 0,
    "speculative.p_min": 0.0,
    "timings_per_token": False,
    "lora": [],
}
"""Settings of llama-server that llmd does not have: no context shift, no draft model, no adapters."""


def generation_settings(
    settings: Settings, choice: SamplingChoice, defaults: GenerationDefaults
) -> dict[str, Any]:
    """Return the settings of a request, including default values."""
    limit = -1 if settings.end.max_tokens is None else settings.end.max_tokens
    return {
        **_sampling(choice, defaults),
        **_dry(choice.dry or _NO_DRY),
        **_mirostat(choice.mirostat),
        **_grammar(settings),
        "stop": list(settings.end.strings),
        "max_tokens": limit,
        "n_predict": limit,
        "ignore_eos": settings.end.ignore_eos,
        "stream": settings.stream,
        "logit_bias": [{"bias": bias, "token": token} for token, bias in choice.logit_bias],
        "n_probs": settings.n_probs or 0,
        "post_sampling_probs": settings.post_sampling_probs,
        **_FIXED,
    }


def _sampling(choice: SamplingChoice, defaults: GenerationDefaults) -> dict[str, Any]:
    params = choice.params(defaults, choice.drawn_seed(), 0)
    spread, xtc = params.dynamic_temperature or _NO_DYNAMIC_TEMPERATURE, params.xtc or _NO_XTC
    edits = ("penalties", "dry")
    return {
        "seed": RANDOM_SEED if choice.seed is None else params.seed,
        "temperature": params.temperature,
        "dynatemp_range": spread.spread,
        "dynatemp_exponent": spread.exponent,
        "top_k": params.top_k,
        "top_p": params.top_p,
        "min_p": params.min_p,
        "top_n_sigma": params.top_n_sigma or OFF_SIGMA,
        "xtc_probability": xtc.probability,
        "xtc_threshold": xtc.threshold,
        "typical_p": params.typical_p,
        "repeat_last_n": _last_n(ALL_TOKENS if params.penalty_last_n is None else params.penalty_last_n),
        "repeat_penalty": params.repetition_penalty,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "samplers": [*edits, *params.order] if choice.samplers is None else list(choice.samplers),
    }


def _dry(dry: DryChoice) -> dict[str, Any]:
    return {
        "dry_multiplier": dry.multiplier,
        "dry_base": dry.base,
        "dry_allowed_length": dry.allowed_len,
        "dry_penalty_last_n": _last_n(dry.last_n),
        "dry_sequence_breakers": list(dry.breakers),
    }


def _mirostat(mirostat: Mirostat | None) -> dict[str, Any]:
    version, values = 0 if mirostat is None else mirostat.version, mirostat or _DEFAULT_MIROSTAT
    return {"mirostat": version, "mirostat_tau": values.tau, "mirostat_eta": values.eta}


def _grammar(settings: Settings) -> dict[str, Any]:
    """``grammar`` is GBNF; a schema is not converted to GBNF, but returned as ``json_schema``."""
    grammar = settings.grammar
    if grammar is None or grammar.kind == "gbnf":
        return {"grammar": grammar.text if grammar else ""}
    return {"grammar": "", "json_schema": msgspec.json.decode(grammar.text)}


def _last_n(count: int) -> int:
    return WHOLE_CONTEXT if count == ALL_TOKENS else count
