"""Request fields of samplers, under the names that vLLM and llama.cpp gave them; dialects share them."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from llmd.api.samplers import DynamicTemperature, Mirostat, SamplerName, Xtc
from llmd.chat.sampling_choice import ALL_TOKENS, DryChoice, StageName
from llmd.server.errors import BadRequestError
from llmd.server.http.request_fields import RequestFields

MAX_PENALTY = 100.0
MAX_TEMPERATURE = 100.0
MAX_SIGMA = 1000.0
MAX_TAU = 100.0
MAX_DRY_BASE = 1e6
MAX_BREAKERS = 16
MAX_BREAKER_LEN = 40
MAX_WORDS = 1000
ALIASES: dict[str, StageName] = {
    "top-n-sigma": "top_n_sigma",
    "top-k": "top_k",
    "typical_p": "typ_p",
    "typical-p": "typ_p",
    "typical": "typ_p",
    "typ-p": "typ_p",
    "typ": "typ_p",
    "top-p": "top_p",
    "nucleus": "top_p",
    "min-p": "min_p",
    "temp": "temperature",
}
LETTERS: dict[str, StageName] = {
    "e": "penalties",
    "d": "dry",
    "s": "top_n_sigma",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "m": "min_p",
    "x": "xtc",
    "t": "temperature",
}
STAGES: tuple[StageName, ...] = ("penalties", "dry", *get_args(SamplerName))


class SamplerFields(Struct, frozen=True):
    """Fields of `SamplingChoice` beside those that every API has."""

    typical_p: float | None
    top_n_sigma: float
    dynamic_temperature: DynamicTemperature | None
    xtc: Xtc | None
    mirostat: Mirostat | None
    samplers: tuple[StageName, ...] | None
    repeat_last_n: int | None
    dry: DryChoice | None


def read_samplers(fields: RequestFields) -> SamplerFields:
    """``typical_p``, ``top_n_sigma``, ``dynatemp_*``, ``xtc_*``, ``mirostat*``, ``samplers``, ``repeat_last_n``, ``dry_*``.

    Raises:
        BadRequestError: a value is out of range, or asks for an order that cannot be had.
    """
    typical_p = fields.number("typical_p", 0.0, 1.0)
    return SamplerFields(
        typical_p=None if typical_p == 0.0 else typical_p,
        top_n_sigma=max(fields.number("top_n_sigma", -1.0, MAX_SIGMA) or 0.0, 0.0),
        dynamic_temperature=_dynamic_temperature(fields),
        xtc=_xtc(fields),
        mirostat=_mirostat(fields),
        samplers=_samplers(fields),
        repeat_last_n=_last_n(fields, "repeat_last_n"),
        dry=_dry(fields),
    )


def _dynamic_temperature(fields: RequestFields) -> DynamicTemperature | None:
    spread = fields.number("dynatemp_range", 0.0, MAX_TEMPERATURE)
    exponent = fields.number("dynatemp_exponent", 0.0, MAX_TEMPERATURE)
    return DynamicTemperature(spread, 1.0 if exponent is None else exponent) if spread else None


def _xtc(fields: RequestFields) -> Xtc | None:
    probability = fields.number("xtc_probability", 0.0, 1.0)
    threshold = fields.number("xtc_threshold", 0.0, 1.0)
    return Xtc(probability, 0.1 if threshold is None else threshold) if probability else None


def _mirostat(fields: RequestFields) -> Mirostat | None:
    version = fields.integer("mirostat", 0, 2)
    tau = fields.number("mirostat_tau", 0.0, MAX_TAU)
    eta = fields.number("mirostat_eta", 0.0, MAX_TAU)
    if not version:
        return None
    defaults = Mirostat(1 if version == 1 else 2)
    return Mirostat(
        defaults.version, defaults.tau if tau is None else tau, defaults.eta if eta is None else eta
    )


def _last_n(fields: RequestFields, name: str) -> int | None:
    """A number of tokens, where -1 means all that there are."""
    count = fields.integer(name, -1, ALL_TOKENS)
    return ALL_TOKENS if count == -1 else count


def _dry(fields: RequestFields) -> DryChoice | None:
    multiplier = fields.number("dry_multiplier", 0.0, MAX_PENALTY)
    base = fields.number("dry_base", 1.0, MAX_DRY_BASE)
    allowed_len = fields.integer("dry_allowed_length", 1, ALL_TOKENS)
    last_n = _last_n(fields, "dry_penalty_last_n")
    breakers = _breakers(fields)
    defaults = DryChoice(multiplier or 0.0)
    if not multiplier or last_n == 0:
        return None
    return DryChoice(
        multiplier,
        defaults.base if base is None else base,
        defaults.allowed_len if allowed_len is None else allowed_len,
        defaults.last_n if last_n is None else last_n,
        defaults.breakers if breakers is None else breakers,
    )


def _breakers(fields: RequestFields) -> tuple[str, ...] | None:
    """Breakers of the request; an empty list is none at all."""
    if fields.value("dry_sequence_breakers") is None:
        return None
    breakers = fields.strings("dry_sequence_breakers", MAX_BREAKERS)
    if not all(0 < len(breaker) <= MAX_BREAKER_LEN for breaker in breakers):
        raise fields.invalid("dry_sequence_breakers", f"texts of 1 to {MAX_BREAKER_LEN} characters")
    return breakers


def _samplers(fields: RequestFields) -> tuple[StageName, ...] | None:
    """The order of samplers: a list of names, or llama.cpp's letters."""
    value = fields.value("samplers")
    if value is None:
        return None
    if isinstance(value, str):
        found = [LETTERS.get(letter) for letter in value]
    elif isinstance(value, list):
        found = [_stage(item) for item in value]
    else:
        found = [None]
    stages = tuple(stage for stage in found if stage is not None)
    if len(stages) < len(found) or len(set(stages)) < len(stages):
        raise fields.invalid("samplers", f"a list of {', '.join(STAGES)}, each at most once")
    edits = [stage for stage in stages if stage in ("penalties", "dry")]
    if edits != sorted(edits, reverse=True) or list(stages[: len(edits)]) != edits:
        raise BadRequestError(
            "samplers: penalties and dry edit logits before all others, in this order",
            code="unsupported_value",
            param="samplers",
            hint="put penalties first and dry second, or leave them out to switch them off",
        )
    return stages


def _stage(name: object) -> StageName | None:
    if not isinstance(name, str):
        return None
    return ALIASES.get(name) or next((stage for stage in STAGES if stage == name), None)


def read_bad_words(fields: RequestFields) -> tuple[str, ...]:
    """``bad_words``: texts that an answer must not have."""
    words = fields.strings("bad_words", MAX_WORDS)
    if not all(words):
        raise fields.invalid("bad_words", "a list of texts that are not empty")
    return words
