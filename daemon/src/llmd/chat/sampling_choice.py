"""What a caller says about sampling, over what the model's makers say."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal, cast

from msgspec import Struct

from llmd.api.messages import SamplingParams
from llmd.api.samplers import DEFAULT_ORDER, Dry, DynamicTemperature, Mirostat, SamplerName, Xtc
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.tokenizers.token_runs import Breakers, Runs, find_bad_words, find_breakers
from llmd.chat.tokenizers.tokenizer import Tokenizer

SEED_BITS = 64
ALL_TOKENS = (1 << 31) - 1
"""More tokens than any context has."""

StageName = Literal["penalties", "dry", SamplerName]
"""What a list of samplers may name, by llama.cpp's names."""


class DryChoice(Struct, frozen=True):
    """`llmd.api.samplers.Dry` as a caller writes it: breakers are texts."""

    multiplier: float
    base: float = 1.75
    allowed_len: int = 2
    last_n: int = ALL_TOKENS
    breakers: tuple[str, ...] = ("\n", ":", '"', "*")


class NamedTokens(Struct, frozen=True):
    """Texts of a choice as tokens of one model."""

    breakers: Breakers = Breakers()
    bad_words: Runs = ()


NO_TOKENS = NamedTokens()


class SamplingChoice(Struct, frozen=True):
    """What a request says about sampling; None: the model's default, or off.

    ``repeat_last_n`` None: the repetition penalty looks at prompt and output, the others at the output; else all three
    look at so many last tokens of both. ``samplers`` is the order, without those that are not to be used; None is
    `DEFAULT_ORDER` with all of them.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    logprobs: int | None = None
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
    repeat_last_n: int | None = None
    dry: DryChoice | None = None
    bad_words: tuple[str, ...] = ()
    allowed_ids: tuple[int, ...] = ()
    logprob_ids: tuple[int, ...] = ()
    post_sampling: bool = False

    @property
    def names_tokens(self) -> bool:
        """Whether it names tokens by their text, so that `tokens` must be asked."""
        return bool(self.bad_words or self.dry)

    def tokens(self, tokenizer: Tokenizer, vocabulary: Sequence[bytes]) -> NamedTokens:
        """The tokens that it names by their text; this may take a while: call it in a thread."""
        texts = self.dry.breakers if self.dry else ()
        return NamedTokens(
            find_breakers(tokenizer, vocabulary, texts), find_bad_words(tokenizer, vocabulary, self.bad_words)
        )

    def params(
        self, defaults: GenerationDefaults, seed: int, choice: int, tokens: NamedTokens = NO_TOKENS
    ) -> SamplingParams:
        """The values that hold: the request's, the model's, those that change nothing."""
        penalises = self._uses("penalties")
        repetition = _first(self.repetition_penalty, defaults.repetition_penalty, 1.0)
        return SamplingParams(
            seed=seed,
            temperature=_first(self.temperature, defaults.temperature, 1.0)
            if self._uses("temperature")
            else 1.0,
            top_k=int(_first(self.top_k, defaults.top_k, 0)),
            top_p=_first(self.top_p, defaults.top_p, 1.0),
            min_p=_first(self.min_p, defaults.min_p, 0.0),
            choice=choice,
            logprobs=self.logprobs,
            repetition_penalty=repetition if penalises else 1.0,
            frequency_penalty=self.frequency_penalty if penalises else 0.0,
            presence_penalty=self.presence_penalty if penalises else 0.0,
            logit_bias=self.logit_bias,
            typical_p=_first(self.typical_p, defaults.typical_p, 1.0),
            top_n_sigma=self.top_n_sigma,
            dynamic_temperature=self.dynamic_temperature,
            xtc=self.xtc,
            mirostat=self.mirostat,
            order=self._order(),
            penalty_last_n=self.repeat_last_n,
            dry=self._dry(tokens.breakers) if self._uses("dry") else None,
            bad_words=tokens.bad_words,
            allowed_ids=self.allowed_ids,
            logprob_ids=self.logprob_ids,
            post_sampling=self.post_sampling,
        )

    def drawn_seed(self) -> int:
        """The seed, of any size, as 64 bits; a random one where none was given."""
        return secrets.randbits(SEED_BITS) if self.seed is None else self.seed % (1 << SEED_BITS)

    def _uses(self, name: StageName) -> bool:
        return self.samplers is None or name in self.samplers

    def _order(self) -> tuple[SamplerName, ...]:
        if self.samplers is None:
            return DEFAULT_ORDER
        return tuple(cast("SamplerName", name) for name in self.samplers if name not in ("penalties", "dry"))

    def _dry(self, breakers: Breakers) -> Dry | None:
        if self.dry is None:
            return None
        dry = self.dry
        return Dry(dry.multiplier, dry.base, dry.allowed_len, dry.last_n, breakers.ids, breakers.runs)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
