"""Phi-3 (fused projections, window, longrope), Phi-4 and Phi-4-mini (partial rotation, tied)."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def phi3(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "original_max_position_embeddings": 128,
        "sliding_window": None,
    }
    return config("Phi3ForCausalLM", "phi3", **(shape | fields))


def longrope(pairs: int) -> dict[str, Any]:
    return {
        "type": "longrope",
        "short_factor": [1.0 + 0.1 * i for i in range(pairs)],
        "long_factor": [1.3 + 0.7 * i * i for i in range(pairs)],
    }


PHI3_LONG = phi3(max_position_embeddings=512, rope_scaling=longrope(8))
PHI4_MINI = phi3(
    vocab_size=197,
    hidden_size=96,
    intermediate_size=160,
    num_key_value_heads=2,
    partial_rotary_factor=0.75,
    tie_word_embeddings=True,
    max_position_embeddings=512,
    rope_scaling=longrope(9),
)

CASES = (
    TinyModel("phi3-window", phi3(sliding_window=13)),
    TinyModel("phi3-longrope-short", PHI3_LONG, context_len=128),
    TinyModel("phi3-longrope-long", PHI3_LONG, context_len=129, seed=2),
    TinyModel(
        "phi4",
        phi3(
            hidden_size=60,
            intermediate_size=107,
            num_attention_heads=6,
            num_key_value_heads=2,
            rope_theta=250000.0,
        ),
        dtype="bf16",
        num_shards=2,
    ),
    TinyModel("phi4-mini-short", PHI4_MINI, context_len=128, dtype="bf16"),
    TinyModel("phi4-mini-long", PHI4_MINI, context_len=512, dtype="bf16"),
)
