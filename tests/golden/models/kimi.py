"""Kimi Linear, as published: layers of full attention are counted from 1."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import CONTEXT_LEN, TinyModel, config


def kimi_linear(full: list[int], delta: dict[str, int], **fields: Any) -> dict[str, Any]:
    """A configuration with these layers of full attention, and these sizes of the others."""
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "attention_bias": False,
        "q_lora_rank": None,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
        "mla_use_nope": True,
        "num_experts": 8,
        "num_experts_per_token": 3,
        "num_shared_experts": 1,
        "moe_intermediate_size": 32,
        "moe_layer_freq": 1,
        "moe_renormalize": True,
        "moe_router_activation_func": "sigmoid",
        "num_expert_group": 1,
        "topk_group": 1,
        "routed_scaling_factor": 1.7,
        "first_k_dense_replace": 1,
        "model_max_length": CONTEXT_LEN,
    }
    layers = (shape | fields)["num_hidden_layers"]
    linear = {
        "full_attn_layers": full,
        "kda_layers": [layer for layer in range(1, layers + 1) if layer not in full],
        **delta,
    }
    both = config("KimiLinearForCausalLM", "kimi_linear", linear_attn_config=linear, **(shape | fields))
    del both["max_position_embeddings"], both["rope_theta"]
    return both


CASES = (
    TinyModel(
        "kimi-linear",
        kimi_linear([3], {"head_dim": 24, "num_heads": 4, "short_conv_kernel_size": 4}),
        dtype="bf16",
        seed=2,
    ),
    TinyModel(
        "kimi-linear-odd",
        kimi_linear(
            [1, 4],
            {"head_dim": 13, "num_heads": 3, "short_conv_kernel_size": 3},
            hidden_size=52,
            num_attention_heads=3,
            num_key_value_heads=3,
            kv_lora_rank=24,
            qk_nope_head_dim=18,
            qk_rope_head_dim=6,
            v_head_dim=11,
            num_shared_experts=2,
            first_k_dense_replace=2,
        ),
        seed=3,
    ),
    TinyModel(
        "kimi-linear-groups",
        kimi_linear(
            [2],
            {"head_dim": 16, "num_heads": 2, "short_conv_kernel_size": 4},
            num_hidden_layers=3,
            q_lora_rank=26,
            num_expert_group=4,
            topk_group=2,
            moe_renormalize=False,
        ),
        dtype="f16",
        seed=5,
    ),
    TinyModel(
        "kimi-linear-one-expert",
        kimi_linear(
            [2],
            {"head_dim": 18, "num_heads": 4, "short_conv_kernel_size": 4},
            num_hidden_layers=2,
            num_experts_per_token=1,
            num_expert_group=4,
            topk_group=2,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "kimi-linear-all-experts",
        kimi_linear(
            [2],
            {"head_dim": 18, "num_heads": 4, "short_conv_kernel_size": 4},
            num_hidden_layers=2,
            num_experts=6,
            num_experts_per_token=6,
        ),
        dtype="bf16",
        seed=2,
    ),
)
