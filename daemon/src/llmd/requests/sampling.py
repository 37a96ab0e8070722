"""The sampling fields, declared once for every API, for `llmd.Engine` and for docs/sampling.md.

To add a sampler, declare its parameter in `llmd.api.samplers` and its field here, and implement it in
`llmd.sampling`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, cast, get_type_hints

from msgspec import Struct

from llmd.api.samplers import (
    DEFAULT_ORDER,
    Dry,
    DynamicTemperature,
    Mirostat,
    SamplerName,
    SamplingParams,
    Xtc,
)
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.tokenizers.token_runs import Breakers, find_bad_words, find_breakers
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.requests.fields import RequestFields, is_token_id
from llmd.requests.named_tokens import (
    ALL_TOKENS,
    NO_TOKENS,
    DryChoice,
    NamedTokens,
    read_breakers,
    read_words,
)
from llmd.requests.number import Number
from llmd.requests.sampler_order import StageName, read_order

SEED_BITS = 64
ANY_SEED = 1 << 256
MAX_TOKENS = ALL_TOKENS
MAX_TEMPERATURE = 100.0
MAX_BIAS = 100.0

Reader = Callable[[RequestFields, str], Any]
"""Reads and checks one field, by its name."""


def _read_bias(fields: RequestFields, name: str) -> tuple[tuple[int, float], ...]:
    biases = fields.nested(name)
    found = [(token, biases.number(token, -MAX_BIAS, MAX_BIAS)) for token in biases.names]
    if not all(token.isascii() and token.isdecimal() and is_token_id(int(token)) for token, _ in found):
        raise fields.invalid(name, "an object of numbers by token id")
    return tuple((int(token), bias) for token, bias in found if bias is not None)


class SamplingOptions(TypedDict, total=False):
    """Sampling fields of a request, also options of `llmd.Engine`; each with its type and its reader.

    If a field is absent or None, the value that the model's authors chose applies; if they chose none, it is
    off.
    """

    seed: Annotated[int | None, Number(-ANY_SEED, ANY_SEED, whole=True)]
    """The same seed draws the same tokens."""
    temperature: Annotated[float | None, Number(0.0, 2.0, off=(1.0,), narrows=True)]
    """Logits are divided by it; 0 takes the best token."""
    top_k: Annotated[int | None, Number(-1, MAX_TOKENS, whole=True, floor=0, off=(-1, 0), narrows=True)]
    """Keep this many best tokens."""
    top_p: Annotated[float | None, Number(0.0, 1.0, excludes_low=True, off=(1.0,), narrows=True)]
    """Keep the best tokens up to this sum of probabilities."""
    min_p: Annotated[float | None, Number(0.0, 1.0, off=(0.0,), narrows=True)]
    """Keep tokens with at least this probability relative to the best token."""
    typical_p: Annotated[float | None, Number(0.0, 1.0, absent=0.0, off=(0.0, 1.0), narrows=True)]
    """Keep tokens whose surprise is closest to the average, up to this sum of probabilities."""
    top_n_sigma: Annotated[float | None, Number(-1.0, 1000.0, floor=0.0, off=(-1.0, 0.0), narrows=True)]
    """Keep logits within this many standard deviations of the best."""
    dynatemp_range: Annotated[float | None, Number(0.0, MAX_TEMPERATURE, off=(0.0,), narrows=True)]
    """Vary the temperature by up to this much with the model's certainty."""
    dynatemp_exponent: Annotated[float | None, Number(0.0, MAX_TEMPERATURE)]
    """Exponent of the mapping from entropy to temperature."""
    xtc_probability: Annotated[float | None, Number(0.0, 1.0, off=(0.0,), narrows=True)]
    """Probability with which XTC excludes the likeliest tokens."""
    xtc_threshold: Annotated[float | None, Number(0.0, 1.0)]
    """Only tokens of at least this probability are excluded by XTC."""
    mirostat: Annotated[Literal[0, 1, 2] | None, Number(0, 2, whole=True, off=(0,), narrows=True)]
    """Version of mirostat."""
    mirostat_tau: Annotated[float | None, Number(0.0, 100.0)]
    """Target surprise of mirostat, in bits."""
    mirostat_eta: Annotated[float | None, Number(0.0, 100.0)]
    """Learning rate of mirostat."""
    samplers: Annotated[str | Sequence[str] | None, read_order]
    """The samplers that run, in their order."""
    repetition_penalty: Annotated[
        float | None, Number(0.0, 100.0, excludes_low=True, off=(1.0,), aliases=("repeat_penalty",))
    ]
    """Divides positive logits of tokens that occurred, and multiplies negative ones."""
    repeat_penalty: float | None
    """llama.cpp's name of ``repetition_penalty``."""
    frequency_penalty: Annotated[float | None, Number(-2.0, 2.0, off=(0.0,))]
    """Subtracted from a token's logit for each time that it occurred."""
    presence_penalty: Annotated[float | None, Number(-2.0, 2.0, off=(0.0,))]
    """Subtracted once from the logit of a token that occurred."""
    repeat_last_n: Annotated[int | None, Number(-1, ALL_TOKENS, whole=True)]
    """How many last tokens the three penalties look at; -1: all."""
    dry_multiplier: Annotated[float | None, Number(0.0, 100.0, off=(0.0,))]
    """Strength of DRY."""
    dry_base: Annotated[float | None, Number(1.0, 1e6)]
    """Growth of DRY's penalty with the length of the repetition."""
    dry_allowed_length: Annotated[int | None, Number(1, ALL_TOKENS, whole=True)]
    """Length of repetitions that DRY allows."""
    dry_penalty_last_n: Annotated[int | None, Number(-1, ALL_TOKENS, whole=True)]
    """How many last tokens DRY looks at; -1: all."""
    dry_sequence_breakers: Annotated[Sequence[str] | None, read_breakers]
    """Texts that no repetition crosses."""
    logit_bias: Annotated[Mapping[int, float] | None, _read_bias]
    """Added to the logits of token ids."""
    bad_words: Annotated[str | Sequence[str] | None, read_words]
    """Texts that the answer must not contain."""
    allowed_token_ids: Annotated[Sequence[int] | None, RequestFields.token_ids]
    """The only tokens that may be drawn."""


READERS: Mapping[str, Reader] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(SamplingOptions, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""How each field is read."""


LLAMA_CPP_READERS: dict[str, Reader] = {
    "seed": Number(-ANY_SEED, ANY_SEED, whole=True, absent=-1),
    "top_p": Number(0.0, 1.0),
}
"""Fields that llama.cpp and Ollama read in another way."""


class SamplingChoice(Struct, frozen=True):
    """The sampling that a request asks for. None: the value that the model's authors chose, else off."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    logprobs: int | None = None
    """How many alternatives are returned with each token; None: no log-probabilities."""
    repetition_penalty: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    typical_p: float | None = None
    top_n_sigma: float = 0.0
    dynamic_temperature: DynamicTemperature | None = None
    xtc: Xtc | None = None
    mirostat: Mirostat | None = None
    samplers: tuple[StageName, ...] | None = None
    """The samplers that run, in their order; None: all of them in ``default_order``."""
    default_order: tuple[SamplerName, ...] = DEFAULT_ORDER
    """The order that clients of this API expect if a request has none."""
    repeat_last_n: int | None = None
    """How many last tokens of prompt and output the penalties look at. None: the repetition penalty looks at
    prompt and output, the others at the output.
    """
    dry: DryChoice | None = None
    bad_words: tuple[str, ...] = ()
    allowed_ids: tuple[int, ...] = ()
    logprob_ids: tuple[int, ...] = ()
    """The tokens whose log-probabilities are returned, instead of the best ones."""
    post_sampling: bool = False
    """Log-probabilities are those after all samplers."""

    @property
    def names_tokens(self) -> bool:
        """Whether it names tokens by their text, so that the caller must call `tokens`."""
        return bool(self.bad_words or self.dry)

    def tokens(self, tokenizer: Tokenizer, vocabulary: Sequence[bytes]) -> NamedTokens:
        """Return the tokens that it names by their text. This may take long: call it in a thread."""
        texts = self.dry.breakers if self.dry else ()
        return NamedTokens(
            find_breakers(tokenizer, vocabulary, texts), find_bad_words(tokenizer, vocabulary, self.bad_words)
        )

    def params(
        self, defaults: GenerationDefaults, seed: int, choice: int, tokens: NamedTokens = NO_TOKENS
    ) -> SamplingParams:
        """Return the parameters for the engine:
        the request's values, else the defaults of the model's authors.
        """
        values = {name: self._value(name, defaults) for name in _SAME_NAME}
        left_out = () if self.samplers is None else [name for name in _SWITCHED if name not in self.samplers]
        for name in left_out:
            values |= dict.fromkeys(_SWITCHED[name])
        return SamplingParams(
            seed=seed,
            choice=choice,
            order=self._order(),
            penalty_last_n=self.repeat_last_n,
            dry=None if self.dry is None or "dry" in left_out else _dry_params(self.dry, tokens.breakers),
            bad_words=tokens.bad_words,
            **{name: value for name, value in values.items() if value is not None},
        )

    def drawn_seed(self) -> int:
        """Return the request's seed, which may be of any size, reduced to 64 bits;
        without a seed, a random one.
        """
        return secrets.randbits(SEED_BITS) if self.seed is None else self.seed % (1 << SEED_BITS)

    def _value(self, name: str, defaults: GenerationDefaults) -> Any:
        value = getattr(self, name)
        return getattr(defaults, name, None) if value is None else value

    def _order(self) -> tuple[SamplerName, ...]:
        if self.samplers is None:
            return self.default_order
        return tuple(cast("SamplerName", name) for name in self.samplers if name not in ("penalties", "dry"))


_SAME_NAME = (set(SamplingChoice.__struct_fields__) & set(SamplingParams.__struct_fields__)) - {
    "seed",
    "dry",
    "bad_words",
}
"""Fields that have the same name and meaning for a request and for the engine."""

_SWITCHED: Mapping[StageName, tuple[str, ...]] = {
    "penalties": ("repetition_penalty", "frequency_penalty", "presence_penalty"),
    "dry": (),
    "temperature": ("temperature",),
}
"""Parameters that are off if the list of samplers lacks the sampler.
The others are off because nothing reads them.
"""


def read_sampling(
    fields: RequestFields,
    logprobs: int | None = None,
    *,
    changed: Mapping[str, Reader] | None = None,
    without: Collection[str] = (),
    default_order: tuple[SamplerName, ...] = DEFAULT_ORDER,
) -> SamplingChoice:
    """Read the fields of `SamplingOptions`.

    Args:
        fields: the fields of the request.
        logprobs: see `SamplingChoice.logprobs`.
        changed: fields that this API reads in another way.
        without: fields that this API does not have.
        default_order: see `SamplingChoice.default_order`.

    Raises:
        BadRequestError: a value is out of range, or asks for an order that is not possible.
    """
    readers = {name: reader for name, reader in {**READERS, **(changed or {})}.items() if name not in without}
    values = {name: value for name, reader in readers.items() if (value := reader(fields, name)) is not None}
    if values.get("top_p") == 0.0:  # if an API allows it: the smallest nucleus is one token
        values |= {"top_k": 1, "top_p": 1.0}
    same_name = {name: value for name, value in values.items() if name in SamplingChoice.__struct_fields__}
    composed = {
        "logprobs": logprobs,
        "default_order": default_order,
        "allowed_ids": values.get("allowed_token_ids", ()),
        "repeat_last_n": _last_n(values, "repeat_last_n"),
        "dynamic_temperature": _dynamic_temperature(values),
        "xtc": _xtc(values),
        "mirostat": _mirostat(values),
        "dry": _dry(values),
    }
    return SamplingChoice(**same_name | composed)


def _dynamic_temperature(values: Mapping[str, Any]) -> DynamicTemperature | None:
    spread = values.get("dynatemp_range")
    return DynamicTemperature(spread, values.get("dynatemp_exponent", 1.0)) if spread else None


def _xtc(values: Mapping[str, Any]) -> Xtc | None:
    probability = values.get("xtc_probability")
    return Xtc(probability, values.get("xtc_threshold", 0.1)) if probability else None


def _mirostat(values: Mapping[str, Any]) -> Mirostat | None:
    version = values.get("mirostat")
    if not version:
        return None
    given = {name: values[f"mirostat_{name}"] for name in ("tau", "eta") if f"mirostat_{name}" in values}
    return Mirostat(1 if version == 1 else 2, **given)


def _dry(values: Mapping[str, Any]) -> DryChoice | None:
    multiplier, last_n = values.get("dry_multiplier"), _last_n(values, "dry_penalty_last_n")
    if not multiplier or last_n == 0:
        return None
    given: dict[str, Any] = {
        "base": values.get("dry_base"),
        "allowed_len": values.get("dry_allowed_length"),
        "last_n": last_n,
        "breakers": values.get("dry_sequence_breakers"),
    }
    return DryChoice(multiplier, **{name: value for name, value in given.items() if value is not None})


def _dry_params(dry: DryChoice, breakers: Breakers) -> Dry:
    return Dry(dry.multiplier, dry.base, dry.allowed_len, dry.last_n, breakers.ids, breakers.runs)


def _last_n(values: Mapping[str, Any], name: str) -> int | None:
    count = values.get(name)
    return ALL_TOKENS if count == -1 else count
