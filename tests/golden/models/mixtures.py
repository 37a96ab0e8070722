"""Mixtures of experts: Mixtral, Qwen2-MoE, Qwen3-MoE, OLMoE, Granite MoE, GLM-4.5 and gpt-oss.

Top-k is one, some or all of the experts; layers without experts come first, in between or last.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import TinyModel, config

_SHAPE: dict[str, Any] = {
    "vocab_size": 131,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def mixtral(**fields: Any) -> dict[str, Any]:
    shape = {**_SHAPE, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}
    return config("MixtralForCausalLM", "mixtral", **(shape | fields))


def qwen2_moe(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "num_hidden_layers": 3,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 48,
        "shared_expert_intermediate_size": 52,
        "decoder_sparse_step": 2,
        "norm_topk_prob": False,
        "use_sliding_window": False,
    }
    return config("Qwen2MoeForCausalLM", "qwen2_moe", **(shape | fields))


def qwen3_moe(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "num_hidden_layers": 3,
        "head_dim": 32,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 32,
        "mlp_only_layers": [1],
        "norm_topk_prob": True,
        "use_sliding_window": False,
        "attention_bias": False,
    }
    return config("Qwen3MoeForCausalLM", "qwen3_moe", **(shape | fields))


def olmoe(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "intermediate_size": 40,
        "num_experts": 8,
        "num_experts_per_tok": 4,
        "norm_topk_prob": False,
        "clip_qkv": None,
    }
    return config("OlmoeForCausalLM", "olmoe", **(shape | fields))


def granite_moe(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "intermediate_size": 48,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "attention_bias": False,
        "embedding_multiplier": 1.7,
        "attention_multiplier": 0.28,
        "residual_multiplier": 0.8,
        "logits_scaling": 3.0,
        "tie_word_embeddings": True,
    }
    return config("GraniteMoeForCausalLM", "granitemoe", **(shape | fields))


def granite_moe_shared(**fields: Any) -> dict[str, Any]:
    names = {"architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared"}
    return granite_moe(**fields) | names | {"shared_intermediate_size": 40}


def glm4_moe(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "num_hidden_layers": 3,
        "head_dim": 32,
        "partial_rotary_factor": 0.5,
        "attention_bias": True,
        "use_qk_norm": True,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "n_group": 1,
        "topk_group": 1,
    }
    return config("Glm4MoeForCausalLM", "glm4_moe", **(shape | fields))


GPT_OSS_ROPE = {
    "rope_type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 4.0,
    "beta_slow": 1.0,
    "truncate": False,
}


def gpt_oss(**fields: Any) -> dict[str, Any]:
    shape = {
        **_SHAPE,
        "num_hidden_layers": 3,
        "head_dim": 24,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "sliding_window": 12,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "attention_bias": True,
        "swiglu_limit": 7.0,
        "rope_scaling": GPT_OSS_ROPE,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    whole = config("GptOssForCausalLM", "gpt_oss", **(shape | fields))
    return {name: value for name, value in whole.items() if name != "quantization_config" or value}


CASES = (
    TinyModel("mixtral", mixtral(), dtype="bf16", seed=2),
    TinyModel(
        "mixtral-all-experts",
        mixtral(
            hidden_size=60,
            intermediate_size=37,
            num_attention_heads=6,
            num_key_value_heads=1,
            num_local_experts=5,
            num_experts_per_tok=5,
        ),
        dtype="f16",
        num_shards=3,
        seed=2,
    ),
    TinyModel("qwen2-moe", qwen2_moe(decoder_sparse_step=1, num_hidden_layers=2), dtype="f16"),
    TinyModel("qwen2-moe-every-other-layer", qwen2_moe()),
    TinyModel("qwen3-moe", qwen3_moe(mlp_only_layers=[], num_experts_per_tok=2), dtype="bf16"),
    TinyModel("qwen3-moe-tied", qwen3_moe(tie_word_embeddings=True), gains={"embed_tokens": 0.1}, seed=7),
    TinyModel(
        "qwen3-moe-one-expert",
        qwen3_moe(
            hidden_size=52,
            moe_intermediate_size=33,
            num_experts=16,
            num_experts_per_tok=1,
            norm_topk_prob=False,
            mlp_only_layers=[],
        ),
        dtype="bf16",
    ),
    TinyModel("olmoe", olmoe()),
    TinyModel("granite-moe", granite_moe(), gains={"embed_tokens": 0.08}),
    TinyModel(
        "granite-moe-shared",
        granite_moe_shared(hidden_size=56, intermediate_size=34, tie_word_embeddings=False),
        dtype="bf16",
    ),
    TinyModel("glm4-moe", glm4_moe(), dtype="bf16"),
    TinyModel(
        "glm4-moe-groups",
        glm4_moe(
            n_group=4,
            topk_group=2,
            n_shared_experts=2,
            hidden_size=60,
            use_qk_norm=False,
            routed_scaling_factor=1.0,
            norm_topk_prob=False,
        ),
        seed=2,
    ),
    TinyModel("gpt-oss", gpt_oss(), dtype="bf16", seed=21),
    TinyModel(
        "gpt-oss-floats",
        gpt_oss(
            quantization_config=None,
            hidden_size=60,
            intermediate_size=37,
            num_hidden_layers=2,
            layer_types=["sliding_attention", "full_attention"],
            num_key_value_heads=4,
            num_local_experts=5,
            num_experts_per_tok=5,
            attention_bias=False,
            swiglu_limit=0.9,
            sliding_window=16,
            rope_scaling={"rope_type": "default"},
        ),
        num_shards=2,
        seed=4,
    ),
    TinyModel(
        "olmoe-tied",
        olmoe(num_experts_per_tok=1, tie_word_embeddings=True),
        gains={"embed_tokens": 0.05},
        dtype="bf16",
        seed=4,
    ),
    TinyModel(
        "glm4-moe-one-expert",
        glm4_moe(num_hidden_layers=2, num_experts_per_tok=1, n_group=2),
        dtype="bf16",
    ),
    TinyModel(
        "gpt-oss-tied",
        gpt_oss(
            num_hidden_layers=2,
            layer_types=["sliding_attention", "full_attention"],
            tie_word_embeddings=True,
        ),
        gains={"embed_tokens": 0.35},
        dtype="bf16",
        seed=7,
    ),
    TinyModel(
        "qwen3-moe-all-experts",
        qwen3_moe(
            hidden_size=52,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=1,
            head_dim=18,
            moe_intermediate_size=33,
            num_experts=5,
            num_experts_per_tok=5,
            mlp_only_layers=[],
            tie_word_embeddings=True,
        ),
        gains={"embed_tokens": 0.06},
        seed=5,
    ),
)
