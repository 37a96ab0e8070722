"""Every tiny model."""

from __future__ import annotations

from tests.golden.models import (
    compressed,
    fp8,
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
    nvfp4,
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
    *compressed.CASES,
    *rwkv.CASES,
    *kimi.CASES,
)

ROUNDED_ON_CARDS = (*fp8.FP8_CASES, *nvfp4.NVFP4_CASES)
"""Those in FP8 and NVFP4, whose products of number and scale the CUDA backend rounds to float16."""

OTHERWISE_IN_GGUF = (
    "llama3-gqa-tied",
    "gpt-oss",
    "qwen3-next",
    "qwen3-5-moe",
    "kimi-linear",
    "granite-hybrid",
    "nemotron-h-moe",
    "mamba2",
    "deepseek-v3",
    "deepseek-v4-published",
)
"""Models of which a GGUF file stores something in another form: rotated elements side by side, codes and
scales in blocks, negative rates, tiled heads, the matrices of latent keys and values apart, or shorter
integers."""


def tiny_model(name: str) -> TinyModel:
    """The case of that name."""
    return next(case for case in CASES if case.name == name)
