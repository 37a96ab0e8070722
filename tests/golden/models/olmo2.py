"""OLMo 2: norms after each part instead of before, norms of q and k over their whole width."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config


def olmo2(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "rope_theta": 500000.0,
        "attention_bias": False,
    }
    return config("Olmo2ForCausalLM", "olmo2", **(shape | fields))


CASES = (
    TinyModel("olmo2", olmo2()),
    TinyModel(
        "olmo2-gqa",
        olmo2(hidden_size=56, intermediate_size=105, num_key_value_heads=2, vocab_size=149),
        dtype="bf16",
    ),
)
