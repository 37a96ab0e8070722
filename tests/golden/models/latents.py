"""Models with latent attention: DeepSeek-V2 with and without low-rank queries, DeepSeek-V3, GLM-4.7-Flash."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config

_SHAPE: dict[str, Any] = {
    "vocab_size": 131,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "attention_bias": False,
    "q_lora_rank": 32,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}

LITE_ROPE: dict[str, Any] = {
    "type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "beta_fast": 4.0,
    "beta_slow": 1.0,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
}
V3_ROPE = LITE_ROPE | {"mscale": 1.0, "mscale_all_dim": 0.8}
"""Both numbers differ, so that elements are scaled too; published models have equal ones."""


def deepseek_v2(**fields: Any) -> dict[str, Any]:
    shape = {**_SHAPE, "topk_method": "greedy", "norm_topk_prob": False, "routed_scaling_factor": 1.0}
    return config("DeepseekV2ForCausalLM", "deepseek_v2", **(shape | fields))


def deepseek_v3(**fields: Any) -> dict[str, Any]:
    shape = {**_SHAPE, "n_group": 4, "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 1.5}
    return config("DeepseekV3ForCausalLM", "deepseek_v3", **(shape | fields))


def glm4_moe_lite(**fields: Any) -> dict[str, Any]:
    shape = {**_SHAPE, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.8}
    return config("Glm4MoeLiteForCausalLM", "glm4_moe_lite", **(shape | fields))


CASES = (
    TinyModel(
        "deepseek-v2-lite", deepseek_v2(q_lora_rank=None, rope_scaling=LITE_ROPE), dtype="bf16", num_shards=2
    ),
    TinyModel(
        "deepseek-v2-groups",
        deepseek_v2(
            hidden_size=60,
            q_lora_rank=26,
            kv_lora_rank=38,
            qk_nope_head_dim=14,
            qk_rope_head_dim=10,
            v_head_dim=21,
            topk_method="group_limited_greedy",
            n_group=4,
            topk_group=2,
            n_shared_experts=2,
            routed_scaling_factor=1.7,
            attention_bias=True,
        ),
        seed=2,
    ),
    TinyModel("deepseek-v3", deepseek_v3(rope_scaling=LITE_ROPE), dtype="bf16", seed=3),
    TinyModel(
        "deepseek-v3-halves",
        deepseek_v3(
            hidden_size=60,
            num_attention_heads=3,
            num_key_value_heads=3,
            kv_lora_rank=24,
            qk_nope_head_dim=18,
            qk_rope_head_dim=6,
            v_head_dim=11,
            rope_interleave=False,
            rope_scaling=V3_ROPE,
            first_k_dense_replace=2,
            norm_topk_prob=False,
        ),
        dtype="f16",
        seed=2,
    ),
    TinyModel("glm4-moe-lite", glm4_moe_lite(), dtype="bf16", seed=3),
    TinyModel(
        "deepseek-v3-tied",
        deepseek_v3(
            hidden_size=52,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=3,
            num_experts_per_tok=1,
            n_group=2,
            topk_group=1,
            tie_word_embeddings=True,
        ),
        dtype="bf16",
        seed=2,
    ),
    TinyModel(
        "glm4-moe-lite-all-experts",
        glm4_moe_lite(
            hidden_size=52,
            num_hidden_layers=2,
            n_routed_experts=6,
            num_experts_per_tok=6,
            n_group=3,
            topk_group=3,
        ),
        dtype="bf16",
    ),
)
