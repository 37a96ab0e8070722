"""Gemma 4 text: dense with values that are keys, with layers that share keys, with inputs of single layers,
and with experts beside the feed-forward network.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config

SLIDING, FULL = "sliding_attention", "full_attention"

ROPES: dict[str, Any] = {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
"""As in published models."""


def gemma4(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "vocab_size_per_layer_input": 131,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "global_head_dim": 64,
        "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 12,
        "layer_types": [SLIDING, SLIDING, FULL],
        "rope_parameters": ROPES,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "final_logit_softcapping": 4.0,
        "hidden_size_per_layer_input": 0,
        "num_kv_shared_layers": 0,
    }
    return config("Gemma4ForCausalLM", "gemma4_text", **(shape | fields))


CASES = (
    TinyModel(
        "gemma4",
        gemma4(attention_k_eq_v=True, num_global_key_value_heads=1, use_bidirectional_attention="vision"),
        dtype="bf16",
        seed=22,
    ),
    TinyModel(
        "gemma4-odd",
        gemma4(
            hidden_size=52,
            intermediate_size=99,
            num_key_value_heads=4,
            head_dim=18,
            global_head_dim=22,
            num_hidden_layers=4,
            layer_types=[FULL, SLIDING, SLIDING, FULL],
            tie_word_embeddings=False,
            final_logit_softcapping=None,
            attention_bias=True,
        ),
        num_shards=2,
        seed=1,
    ),
    TinyModel(
        "gemma4-shared",
        gemma4(
            num_hidden_layers=6,
            layer_types=[SLIDING, SLIDING, FULL, SLIDING, SLIDING, FULL],
            num_kv_shared_layers=3,
            use_double_wide_mlp=True,
            head_dim=20,
            global_head_dim=24,
            intermediate_size=40,
        ),
        seed=43,
    ),
    TinyModel(
        "gemma4-per-layer",
        gemma4(
            num_hidden_layers=5,
            layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL],
            num_kv_shared_layers=2,
            hidden_size_per_layer_input=12,
            num_key_value_heads=1,
        ),
        dtype="bf16",
        seed=4,
    ),
    TinyModel(
        "gemma4-moe",
        gemma4(
            enable_moe_block=True,
            num_experts=8,
            top_k_experts=3,
            moe_intermediate_size=24,
            attention_k_eq_v=True,
            num_global_key_value_heads=2,
        ),
        dtype="bf16",
        seed=21,
    ),
)
