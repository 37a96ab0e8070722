"""Hybrids of linear attention and full attention: Qwen3-Next and Qwen3.5, dense and with experts.

Layers of full attention come last, first or in a pattern that does not divide the number of layers.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config

LINEAR, FULL = "linear_attention", "full_attention"

_SHAPE: dict[str, Any] = {
    "vocab_size": 131,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "attention_bias": False,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": [LINEAR, LINEAR, FULL],
    "partial_rotary_factor": 0.25,
}

_EXPERTS: dict[str, Any] = {
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 40,
}


def qwen3_next(**fields: Any) -> dict[str, Any]:
    shape = {**_SHAPE, **_EXPERTS, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}
    return config("Qwen3NextForCausalLM", "qwen3_next", **(shape | fields))


def qwen3_5(**fields: Any) -> dict[str, Any]:
    return config("Qwen3_5ForCausalLM", "qwen3_5_text", **(_SHAPE | fields))


def qwen3_5_moe(**fields: Any) -> dict[str, Any]:
    shape = {name: value for name, value in _SHAPE.items() if name != "intermediate_size"} | _EXPERTS
    return config("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", **(shape | fields))


CASES = (
    TinyModel("qwen3-next", qwen3_next(), dtype="bf16", seed=2),
    TinyModel(
        "qwen3-next-odd",
        qwen3_next(
            hidden_size=60,
            num_hidden_layers=4,
            layer_types=[FULL, LINEAR, LINEAR, FULL],
            linear_num_value_heads=3,
            linear_num_key_heads=3,
            linear_key_head_dim=7,
            linear_value_head_dim=19,
            linear_conv_kernel_dim=3,
            num_experts_per_tok=1,
            decoder_sparse_step=2,
            norm_topk_prob=False,
        ),
        seed=2,
    ),
    TinyModel("qwen3-5", qwen3_5(), dtype="f16", num_shards=2),
    TinyModel(
        "qwen3-5-tied",
        qwen3_5(
            num_hidden_layers=5,
            layer_types=[LINEAR, FULL, LINEAR, LINEAR, FULL],
            linear_num_value_heads=6,
            linear_value_head_dim=16,
            tie_word_embeddings=True,
            partial_rotary_factor=0.5,
        ),
        dtype="bf16",
        seed=4,
    ),
    TinyModel("qwen3-5-moe", qwen3_5_moe(), dtype="bf16"),
    TinyModel(
        "qwen3-next-all-experts",
        qwen3_next(
            hidden_size=60,
            num_hidden_layers=2,
            layer_types=[FULL, LINEAR],
            linear_num_value_heads=6,
            linear_num_key_heads=3,
            linear_key_head_dim=7,
            linear_value_head_dim=19,
            linear_conv_kernel_dim=3,
            num_experts=5,
            num_experts_per_tok=5,
            moe_intermediate_size=21,
            shared_expert_intermediate_size=33,
        ),
        dtype="bf16",
        seed=4,
    ),
)
