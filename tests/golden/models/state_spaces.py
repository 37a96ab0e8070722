"""Models with the state space of Mamba-2: Granite 4, Nemotron-H, Falcon-H1 and Mamba-2 alone."""

from __future__ import annotations

import math
from typing import Any

from tests.golden.models.tiny import TinyModel, config

STATE, FULL = "linear_attention", "full_attention"

_SHAPE: dict[str, Any] = {
    "vocab_size": 131,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "attention_bias": False,
}


def granite_hybrid(**fields: Any) -> dict[str, Any]:
    shape = _SHAPE | {
        "layer_types": [STATE, FULL, STATE],
        "position_embedding_type": "nope",
        "shared_intermediate_size": 88,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "mamba_n_heads": 4,
        "mamba_d_head": 32,
        "mamba_n_groups": 1,
        "mamba_d_state": 24,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "embedding_multiplier": 1.7,
        "attention_multiplier": 0.28,
        "residual_multiplier": 0.8,
        "logits_scaling": 3.0,
    }
    return config("GraniteMoeHybridForCausalLM", "granitemoehybrid", **(shape | fields))


def nemotron_h(**fields: Any) -> dict[str, Any]:
    shape = {name: value for name, value in _SHAPE.items() if name != "num_hidden_layers"} | {
        "head_dim": 24,
        "layers_block_type": [STATE, "mlp", FULL, STATE, "mlp"],
        "mlp_hidden_act": "relu2",
        "mlp_bias": False,
        "layer_norm_epsilon": 1e-3,
        "mamba_num_heads": 6,
        "mamba_head_dim": 20,
        "n_groups": 2,
        "ssm_state_size": 16,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "use_bias": False,
        "time_step_min": 0.0,
    }
    return config("NemotronHForCausalLM", "nemotron_h", **(shape | fields))


def nemotron_h_moe(**fields: Any) -> dict[str, Any]:
    experts = {
        "layers_block_type": [STATE, "moe", FULL, "moe", STATE],
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 1,
        "moe_intermediate_size": 32,
        "moe_shared_expert_intermediate_size": 40,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
    }
    return nemotron_h(**(experts | fields))


def mamba2(**fields: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "vocab_size": 131,
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "num_heads": 8,
        "head_dim": 16,
        "n_groups": 2,
        "state_size": 24,
        "conv_kernel": 4,
        "expand": 2,
        "use_conv_bias": True,
        "use_bias": False,
        "layer_norm_epsilon": 1e-3,
        "time_step_limit": [0.0, math.inf],
    }
    return config("Mamba2ForCausalLM", "mamba2", **(shape | fields))


def falcon_h1(**fields: Any) -> dict[str, Any]:
    shape = _SHAPE | {
        "head_dim": 20,
        "mamba_d_ssm": 80,
        "mamba_n_heads": 4,
        "mamba_d_head": 20,
        "mamba_n_groups": 1,
        "mamba_d_state": 24,
        "mamba_d_conv": 4,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "mamba_rms_norm": False,
        "mamba_norm_before_gate": False,
        "mlp_bias": False,
        "projectors_bias": False,
        "embedding_multiplier": 1.7,
        "lm_head_multiplier": 0.8,
        "attention_in_multiplier": 1.2,
        "attention_out_multiplier": 0.9,
        "key_multiplier": 0.7,
        "mlp_multipliers": [0.8, 1.3],
        "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.7,
        "ssm_multipliers": [0.7, 1.1, 0.6, 1.4, 0.5],
    }
    return config("FalconH1ForCausalLM", "falcon_h1", **(shape | fields))


FALCONS_FACTORS = (
    "embedding_multiplier",
    "lm_head_multiplier",
    "attention_in_multiplier",
    "attention_out_multiplier",
    "key_multiplier",
    "ssm_in_multiplier",
    "ssm_out_multiplier",
)

CASES = (
    TinyModel(
        "granite-hybrid",
        granite_hybrid(tie_word_embeddings=True),
        gains={"embed_tokens": 0.04, "out_proj": 1.5},
        seed=1,
    ),
    TinyModel(
        "granite-hybrid-moe",
        granite_hybrid(
            hidden_size=60,
            num_attention_heads=6,
            num_key_value_heads=3,
            num_hidden_layers=4,
            layer_types=["attention", "mamba", "mamba", "attention"],
            position_embedding_type="rope",
            num_local_experts=6,
            num_experts_per_tok=2,
            shared_intermediate_size=36,
            mamba_n_heads=8,
            mamba_d_head=15,
            mamba_n_groups=2,
            mamba_d_state=10,
            mamba_d_conv=3,
            mamba_conv_bias=False,
            mamba_proj_bias=True,
        ),
        dtype="bf16",
    ),
    TinyModel("nemotron-h", nemotron_h(), dtype="f16", seed=5),
    TinyModel("nemotron-h-moe", nemotron_h_moe(), dtype="bf16"),
    TinyModel(
        "nemotron-h-latent",
        nemotron_h_moe(
            hidden_size=52,
            layers_block_type=["moe", STATE, FULL, "moe"],
            num_attention_heads=3,
            num_key_value_heads=1,
            n_groups=1,
            conv_kernel=3,
            moe_latent_size=28,
            norm_topk_prob=False,
        ),
        dtype="f16",
    ),
    TinyModel("mamba2", mamba2(), dtype="bf16"),
    TinyModel(
        "mamba2-odd",
        mamba2(
            hidden_size=42,
            num_heads=6,
            head_dim=14,
            n_groups=3,
            state_size=9,
            conv_kernel=3,
            use_bias=True,
            tie_word_embeddings=True,
            time_step_limit=[0.3, 1.5],
        ),
        gains={"embeddings": 0.1},
    ),
    TinyModel(
        "mamba2-groups",
        mamba2(
            hidden_size=42,
            num_hidden_layers=2,
            num_heads=6,
            head_dim=14,
            n_groups=3,
            state_size=9,
            conv_kernel=3,
            tie_word_embeddings=True,
        ),
        gains={"embeddings": 0.1},
        dtype="f16",
        seed=2,
    ),
    TinyModel("falcon-h1", falcon_h1()),
    TinyModel(
        "falcon-h1-plain",
        falcon_h1(
            hidden_size=52,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            mamba_d_ssm=54,
            mamba_n_heads=6,
            mamba_d_head=9,
            mamba_n_groups=2,
            mamba_d_state=10,
            mamba_d_conv=3,
            mamba_rms_norm=True,
            **dict.fromkeys(FALCONS_FACTORS, 1.0),
            mlp_multipliers=None,
            ssm_multipliers=None,
        ),
        dtype="f16",
        seed=3,
    ),
    TinyModel(
        "nemotron-h-one-expert",
        nemotron_h_moe(
            layers_block_type=[STATE, FULL, "moe"],
            num_experts_per_tok=1,
            n_group=4,
            topk_group=2,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "nemotron-h-all-experts",
        nemotron_h_moe(
            layers_block_type=["moe", FULL, STATE],
            n_routed_experts=6,
            num_experts_per_tok=6,
            n_group=2,
            topk_group=2,
        ),
        dtype="f16",
        seed=2,
    ),
    TinyModel(
        "falcon-h1-tied",
        falcon_h1(
            num_hidden_layers=2, tie_word_embeddings=True, embedding_multiplier=1.0, lm_head_multiplier=1.0
        ),
        gains={"embed_tokens": 0.5},
        seed=3,
    ),
)
