"""Mistral: Llama with a sliding window, or with none."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def mistral(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "sliding_window": 11,
    }
    return config("MistralForCausalLM", "mistral", **(shape | fields))


CASES = (
    TinyModel("mistral-window", mistral(num_hidden_layers=3), seed=5),
    TinyModel(
        "mistral-window-of-block-size",
        mistral(sliding_window=16, num_key_value_heads=1),
        dtype="bf16",
        seed=2,
    ),
    TinyModel(
        "mistral-no-window",
        mistral(sliding_window=None, head_dim=24, vocab_size=151, rope_theta=1000000.0),
        dtype="bf16",
        num_shards=2,
    ),
)
