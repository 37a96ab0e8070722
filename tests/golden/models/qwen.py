"""Qwen2 (biases on q, k and v) and Qwen3 (norms of q and k per head)."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def qwen2(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rope_theta": 1000000.0,
        "use_sliding_window": False,
        "sliding_window": 9,
        "max_window_layers": 2,
    }
    return config("Qwen2ForCausalLM", "qwen2", **(shape | fields))


def qwen3(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "rope_theta": 1000000.0,
        "attention_bias": False,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": 2,
    }
    return config("Qwen3ForCausalLM", "qwen3", **(shape | fields))


CASES = (
    TinyModel(
        "qwen2-tied",
        qwen2(vocab_size=151, tie_word_embeddings=True),
        gains={"embed_tokens": 0.12, "bias": 0.25},
        seed=10,
    ),
    TinyModel(
        "qwen2-untied",
        qwen2(hidden_size=60, intermediate_size=101, num_attention_heads=6, num_key_value_heads=1),
        dtype="bf16",
    ),
    TinyModel("qwen2-window-above-first-layer", qwen2(use_sliding_window=True, max_window_layers=1), seed=2),
    TinyModel("qwen3-tied", qwen3(tie_word_embeddings=True), dtype="bf16", seed=19),
    TinyModel(
        "qwen3-odd-head",
        qwen3(hidden_size=52, intermediate_size=98, head_dim=22, num_key_value_heads=4, attention_bias=True),
        dtype="f16",
        seed=6,
    ),
)
