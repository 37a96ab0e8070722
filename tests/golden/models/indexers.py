"""Models whose attention is limited to chosen positions: DeepSeek-V3.2, GLM-5, and GLM-5.2 with shared ones.

Fewer positions are chosen than a prompt has. There are many index heads, so that hardly any score is 0: among
equal scores, transformers chooses any positions. Seeds are such that graphics cards, which round rows to
float16, say the same 64 tokens: rounding changes which positions are chosen, and then most tokens.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.latents import LITE_ROPE, deepseek_v3, glm4_moe_lite
from tests.golden.models.tiny import TinyModel

_INDEXER: dict[str, Any] = {"index_n_heads": 16, "index_head_dim": 32, "index_topk": 16}


def deepseek_v32(**fields: Any) -> dict[str, Any]:
    names = {"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32"}
    return deepseek_v3(**_INDEXER | fields) | names


def glm_moe_dsa(**fields: Any) -> dict[str, Any]:
    names = {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa"}
    return glm4_moe_lite(**_INDEXER | fields) | names


CASES = (
    TinyModel("deepseek-v32", deepseek_v32(rope_scaling=LITE_ROPE), dtype="bf16", seed=15),
    TinyModel(
        "deepseek-v32-odd",
        deepseek_v32(
            hidden_size=60,
            num_attention_heads=3,
            num_key_value_heads=3,
            q_lora_rank=26,
            kv_lora_rank=38,
            qk_nope_head_dim=14,
            qk_rope_head_dim=10,
            v_head_dim=21,
            index_n_heads=13,
            index_head_dim=22,
            index_topk=7,
        ),
        dtype="f16",
        seed=11,
    ),
    TinyModel("glm-moe-dsa", glm_moe_dsa(), dtype="bf16", seed=207),
    TinyModel(
        "glm-moe-dsa-shared",
        glm_moe_dsa(
            hidden_size=60,
            num_hidden_layers=6,
            index_n_heads=11,
            index_head_dim=20,
            index_topk=9,
            indexer_types=["full", "full", "shared", "shared", "full", "shared"],
        ),
        seed=279,
    ),
)
