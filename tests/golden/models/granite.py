"""Granite: multipliers on embedding, attention, residual and logits."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def granite(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "embedding_multiplier": 1.7,
        "attention_multiplier": 0.28,
        "residual_multiplier": 0.8,
        "logits_scaling": 3.0,
        "attention_bias": False,
        "mlp_bias": False,
    }
    return config("GraniteForCausalLM", "granite", **(shape | fields))


CASES = (
    TinyModel("granite", granite(tie_word_embeddings=True), gains={"embed_tokens": 0.08}, seed=4),
    TinyModel(
        "granite-untied-biases",
        granite(
            hidden_size=60,
            intermediate_size=103,
            num_attention_heads=6,
            num_key_value_heads=3,
            attention_bias=True,
            mlp_bias=True,
        ),
        dtype="bf16",
    ),
)
