"""Gemma 2 (soft-caps, alternating windows) and Gemma 3 text (norms of q and k, two RoPE bases)."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def gemma(architecture: str, model_type: str, **fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 40,
        "sliding_window": 12,
        "tie_word_embeddings": True,
        "attention_bias": False,
    }
    return config(architecture, model_type, **(shape | fields))


def gemma2(**fields: Any) -> dict[str, Any]:
    caps = {"attn_logit_softcapping": 6.0, "final_logit_softcapping": 4.0}
    return gemma("Gemma2ForCausalLM", "gemma2", **(caps | fields))


def gemma3(**fields: Any) -> dict[str, Any]:
    bases = {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window_pattern": 3}
    return gemma("Gemma3ForCausalLM", "gemma3_text", **(bases | fields))


CASES = (
    TinyModel("gemma2", gemma2(), seed=5),
    TinyModel(
        "gemma2-mqa",
        gemma2(hidden_size=52, intermediate_size=99, num_key_value_heads=1, head_dim=18),
        dtype="bf16",
        seed=5,
    ),
    TinyModel("gemma3", gemma3(), seed=7),
    TinyModel(
        "gemma3-linear-rope",
        gemma3(head_dim=20, num_key_value_heads=1, rope_scaling={"rope_type": "linear", "factor": 8.0}),
        dtype="bf16",
        num_shards=2,
        seed=14,
    ),
)
