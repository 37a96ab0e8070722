"""What a caller says about sampling, over what the model's makers say."""

from __future__ import annotations

import secrets

from msgspec import Struct

from llmd.api.messages import SamplingParams
from llmd.chat.generation_defaults import GenerationDefaults

SEED_BITS = 64


class SamplingChoice(Struct, frozen=True):
    """What a request says about sampling; None: the model's default."""

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

    def params(self, defaults: GenerationDefaults, seed: int, choice: int) -> SamplingParams:
        """The values that hold: the request's, the model's, those that change nothing."""
        return SamplingParams(
            seed=seed,
            temperature=_first(self.temperature, defaults.temperature, 1.0),
            top_k=int(_first(self.top_k, defaults.top_k, 0)),
            top_p=_first(self.top_p, defaults.top_p, 1.0),
            min_p=_first(self.min_p, defaults.min_p, 0.0),
            choice=choice,
            logprobs=self.logprobs,
            repetition_penalty=_first(self.repetition_penalty, defaults.repetition_penalty, 1.0),
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            logit_bias=self.logit_bias,
        )

    def drawn_seed(self) -> int:
        """The seed, of any size, as 64 bits; a random one where none was given."""
        return secrets.randbits(SEED_BITS) if self.seed is None else self.seed % (1 << SEED_BITS)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
