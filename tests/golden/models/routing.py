"""Mixtures in which a row uses one expert, or all: of families without such a model elsewhere.

They are small, and their sizes are odd.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.gemma4 import gemma4
from tests.golden.models.hybrids import FULL, LINEAR, qwen3_5_moe
from tests.golden.models.indexers import deepseek_v32, glm_moe_dsa
from tests.golden.models.latents import deepseek_v2, deepseek_v3, glm4_moe_lite
from tests.golden.models.mixtures import (
    glm4_moe,
    gpt_oss,
    granite_moe,
    granite_moe_shared,
    mixtral,
    olmoe,
    qwen2_moe,
)
from tests.golden.models.state_spaces import granite_hybrid
from tests.golden.models.tiny import TinyModel

_SMALL: dict[str, Any] = {
    "vocab_size": 67,
    "hidden_size": 36,
    "intermediate_size": 29,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
}
_FIVE: dict[str, Any] = _SMALL | {"num_experts": 5, "moe_intermediate_size": 13}
_LOCAL: dict[str, Any] = _SMALL | {"num_local_experts": 5}
_QWEN2: dict[str, Any] = _FIVE | {"shared_expert_intermediate_size": 17, "decoder_sparse_step": 1}
_QWEN35: dict[str, Any] = _FIVE | {
    "shared_expert_intermediate_size": 17,
    "head_dim": 16,
    "layer_types": [LINEAR, FULL],
    "linear_key_head_dim": 7,
    "linear_value_head_dim": 11,
}
_GRANITE4: dict[str, Any] = _LOCAL | {
    "layer_types": ["mamba", "attention"],
    "shared_intermediate_size": 17,
    "mamba_n_heads": 6,
    "mamba_d_head": 12,
    "mamba_n_groups": 2,
    "mamba_d_state": 10,
}
_GEMMA4: dict[str, Any] = _FIVE | {
    "enable_moe_block": True,
    "vocab_size_per_layer_input": 67,
    "head_dim": 12,
    "global_head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention"],
}
_GROUPS: dict[str, Any] = _SMALL | {
    "moe_intermediate_size": 13,
    "n_routed_experts": 6,
    "n_group": 3,
    "topk_group": 3,
}
_LATENT: dict[str, Any] = _GROUPS | {
    "num_key_value_heads": 3,
    "q_lora_rank": 14,
    "kv_lora_rank": 22,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 9,
}
_INDEXED: dict[str, Any] = _LATENT | {"index_n_heads": 11, "index_head_dim": 14, "index_topk": 9}
_GPT_OSS: dict[str, Any] = _LOCAL | {
    "hidden_size": 32,
    "intermediate_size": 32,
    "head_dim": 12,
    "layer_types": ["sliding_attention", "full_attention"],
}

ONE: dict[str, Any] = {"num_experts_per_tok": 1}

ROUTING_CASES = (
    TinyModel("mixtral-one-expert", mixtral(**_LOCAL | ONE), seed=2),
    TinyModel("qwen2-moe-one-expert", qwen2_moe(**_QWEN2 | ONE)),
    TinyModel("qwen2-moe-all-experts", qwen2_moe(**_QWEN2, num_experts_per_tok=5), seed=2),
    TinyModel("olmoe-all-experts", olmoe(**_SMALL, num_experts=5, num_experts_per_tok=5)),
    TinyModel("granite-moe-one-expert", granite_moe(**_LOCAL | ONE, tie_word_embeddings=False), seed=2),
    TinyModel(
        "granite-moe-shared-all-experts",
        granite_moe_shared(**_LOCAL, num_experts_per_tok=5, tie_word_embeddings=False),
    ),
    TinyModel("granite-hybrid-one-expert", granite_hybrid(**_GRANITE4 | ONE)),
    TinyModel("granite-hybrid-all-experts", granite_hybrid(**_GRANITE4, num_experts_per_tok=5)),
    TinyModel("glm4-moe-all-experts", glm4_moe(**_GROUPS, head_dim=12, num_experts_per_tok=6)),
    TinyModel("glm4-moe-lite-one-expert", glm4_moe_lite(**_LATENT | ONE | {"topk_group": 2})),
    TinyModel("deepseek-v2-one-expert", deepseek_v2(**_LATENT | ONE | {"q_lora_rank": None})),
    TinyModel(
        "deepseek-v2-all-experts",
        deepseek_v2(**_LATENT, num_experts_per_tok=6, topk_method="group_limited_greedy"),
        seed=2,
    ),
    TinyModel("deepseek-v3-all-experts", deepseek_v3(**_LATENT, num_experts_per_tok=6), seed=2),
    TinyModel("deepseek-v32-one-expert", deepseek_v32(**_INDEXED | ONE | {"topk_group": 2})),
    TinyModel("deepseek-v32-all-experts", deepseek_v32(**_INDEXED, num_experts_per_tok=6)),
    TinyModel("glm-moe-dsa-one-expert", glm_moe_dsa(**_INDEXED | ONE)),
    TinyModel("glm-moe-dsa-all-experts", glm_moe_dsa(**_INDEXED, num_experts_per_tok=6), seed=2),
    TinyModel("gemma4-one-expert", gemma4(**_GEMMA4, top_k_experts=1), seed=4),
    TinyModel("gemma4-all-experts", gemma4(**_GEMMA4, top_k_experts=5), seed=5),
    TinyModel("gpt-oss-one-expert", gpt_oss(**_GPT_OSS | ONE), dtype="bf16"),
    TinyModel("qwen3-5-moe-one-expert", qwen3_5_moe(**_QWEN35 | ONE)),
    TinyModel("qwen3-5-moe-all-experts", qwen3_5_moe(**_QWEN35, num_experts_per_tok=5)),
)
"""Not among `CASES`: what does not depend on routing is tested with other models of these families."""
