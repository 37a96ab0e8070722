"""Models with compressed attention and hyper-connections: DeepSeek-V4.

Strides are short, so that prompts have several vectors that stand for as many tokens, and fewer vectors are
chosen than there are. There are many index heads, so that hardly any score is 0. The last two models have
only what GGUF files can state, which has no other strides than 4 and 128: all experts or some of them.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config

WINDOWED, CHOOSING, SEEING_ALL = (
    "sliding_attention",
    "compressed_sparse_attention",
    "heavily_compressed_attention",
)
BY_TOKEN, BY_SCORE = "hash_moe", "moe"


def deepseek_v4(**fields: Any) -> dict[str, Any]:
    shared: dict[str, Any] = {
        "vocab_size": 199,
        "hidden_size": 64,
        "moe_intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "qk_rope_head_dim": 16,
        "q_lora_rank": 32,
        "o_groups": 2,
        "o_lora_rank": 24,
        "sliding_window": 24,
        "layer_types": [WINDOWED, CHOOSING, SEEING_ALL, CHOOSING],
        "compress_rates": {CHOOSING: 4, SEEING_ALL: 16},
        "compress_rope_theta": 40000.0,
        "index_n_heads": 16,
        "index_head_dim": 24,
        "index_topk": 6,
        "mlp_layer_types": [BY_TOKEN, BY_SCORE, BY_SCORE, BY_SCORE],
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "routed_scaling_factor": 1.5,
        "norm_topk_prob": True,
        "scoring_func": "sqrtsoftplus",
        "swiglu_limit": 1.0,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
    }
    return config("DeepseekV4ForCausalLM", "deepseek_v4", **shared | fields)


def as_published(**fields: Any) -> dict[str, Any]:
    """A configuration with the names of fields that published checkpoints have."""
    stated = deepseek_v4(**fields)
    for name in ("layer_types", "mlp_layer_types", "compress_rates"):
        del stated[name]
    return stated


CASES = (
    TinyModel("deepseek-v4", deepseek_v4(), dtype="bf16", seed=1),
    TinyModel(
        "deepseek-v4-odd",
        deepseek_v4(
            hidden_size=60,
            moe_intermediate_size=37,
            num_hidden_layers=5,
            num_attention_heads=3,
            head_dim=28,
            qk_rope_head_dim=10,
            q_lora_rank=26,
            o_groups=3,
            o_lora_rank=13,
            sliding_window=7,
            layer_types=[SEEING_ALL, CHOOSING, WINDOWED, SEEING_ALL, CHOOSING],
            compress_rates={CHOOSING: 2, SEEING_ALL: 32},
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 32,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
            },
            index_n_heads=13,
            index_head_dim=22,
            index_topk=9,
            mlp_layer_types=[BY_TOKEN, BY_SCORE, BY_TOKEN, BY_SCORE, BY_SCORE],
            n_routed_experts=5,
            num_experts_per_tok=1,
            hc_mult=3,
            hc_sinkhorn_iters=3,
            hc_eps=1e-3,
        ),
        seed=1,
    ),
    TinyModel(
        "deepseek-v4-published",
        as_published(
            compress_ratios=[0, 0, 4, 128, 4],
            num_hidden_layers=4,
            num_hash_layers=2,
            n_routed_experts=4,
            num_experts_per_tok=4,
            hc_mult=2,
            rope_scaling={"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64},
        ),
        dtype="f16",
        seed=1,
    ),
    TinyModel(
        "deepseek-v4-some-experts",
        as_published(
            compress_ratios=[4, 0, 128, 4],
            num_hash_layers=2,
            rope_scaling={
                "type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 32,
                "beta_fast": 24.0,
                "beta_slow": 2.0,
            },
        ),
        dtype="bf16",
        seed=3,
    ),
)
