"""The keys of mixtures of experts, and of latent attention."""

from __future__ import annotations

from typing import Any

from llmd.models.gguf.fields import LATENT_RANK, ROTATED, GgufFields

EXPERTS = "expert_count"
GATING, SOFTMAX, SIGMOID, SQRT_SOFTPLUS = "expert_gating_func", 1, 2, 4
"""The key of the scores of routers, and the numbers of their kinds."""


def experts(fields: GgufFields, count: str) -> dict[str, Any]:
    """Return the number of experts as the field ``count``, and how many a row uses."""
    return {count: fields.integer(EXPERTS), "num_experts_per_tok": fields.integer("expert_used_count")}


def expert_width(fields: GgufFields) -> int:
    """Return the width between the matrices of an expert; some files state only that of all of a row's."""
    stated: int = fields.integer("expert_feed_forward_length", 0)
    return stated or fields.integer("feed_forward_length") // max(1, fields.integer("expert_used_count"))


def dense_first(fields: GgufFields) -> dict[str, Any]:
    """Return how many layers there are without draft heads, and how many of them have no experts."""
    return {
        "num_hidden_layers": fields.integer("block_count") - fields.integer("nextn_predict_layers", 0),
        "first_k_dense_replace": fields.integer("leading_dense_block_count", 0),
    }


def sigmoid_experts(fields: GgufFields) -> dict[str, Any]:
    if (gating := fields.integer(GATING, SIGMOID)) != SIGMOID:
        raise fields.refuse(GATING, gating, f"{SIGMOID} sigmoid")
    return grouped_experts(fields)


def grouped_experts(fields: GgufFields) -> dict[str, Any]:
    """Return the fields of mixtures as DeepSeek introduced them."""
    return experts(fields, "n_routed_experts") | {
        "moe_intermediate_size": expert_width(fields),
        "n_shared_experts": fields.integer("expert_shared_count", 1),
        "norm_topk_prob": bool(fields.flags("expert_weights_norm")),
        "routed_scaling_factor": fields.real("expert_weights_scale", 1.0),
        "n_group": fields.integer("expert_group_count", 1),
        "topk_group": fields.integer("expert_group_used_count", 1),
    }


def deepseek2_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the sizes of latent attention. Newer files have the matrices of keys and of values apart, and
    keys and values as attention sees them then; older ones have one tensor, and the sizes of heads.
    """
    keys, values = (
        fields.integer(f"attention.{side}_length_mla", 0) or fields.integer(f"attention.{side}_length")
        for side in ("key", "value")
    )
    grouped = fields.integer("expert_group_count", 1) > 1
    return (
        grouped_experts(fields)
        | dense_first(fields)
        | {
            "num_key_value_heads": fields.integer("attention.head_count"),
            "topk_method": "group_limited_greedy" if grouped else "greedy",
            "attention_bias": fields.has_tensor("blk.0.attn_kv_a_mqa.bias"),
            "q_lora_rank": fields.integer("attention.q_lora_rank", 0) or None,
            "kv_lora_rank": fields.integer(LATENT_RANK),
            "qk_nope_head_dim": keys - fields.integer(ROTATED),
            "qk_rope_head_dim": fields.integer(ROTATED),
            "v_head_dim": values,
            "split_kv_b": fields.has_tensor("blk.0.attn_k_b.weight"),
        }
    )
