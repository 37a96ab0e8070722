"""Every tiny model."""

from __future__ import annotations

from tests.golden.models import (
    gemma,
    gemma4,
    granite,
    hybrids,
    indexers,
    kimi,
    latents,
    llama,
    mistral,
    mixtures,
    olmo2,
    phi3,
    qwen,
    rwkv,
    state_spaces,
)
from tests.golden.models.tiny import TinyModel

CASES: tuple[TinyModel, ...] = (
    *llama.CASES,
    *mistral.CASES,
    *qwen.CASES,
    *phi3.CASES,
    *gemma.CASES,
    *gemma4.CASES,
    *granite.CASES,
    *olmo2.CASES,
    *mixtures.CASES,
    *hybrids.CASES,
    *state_spaces.CASES,
    *latents.CASES,
    *indexers.CASES,
    *rwkv.CASES,
    *kimi.CASES,
)


def tiny_model(name: str) -> TinyModel:
    """The case of that name."""
    return next(case for case in CASES if case.name == name)
