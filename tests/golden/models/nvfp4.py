"""Models in NVFP4, as ModelOpt and llm-compressor write them."""

from __future__ import annotations

from typing import Any

from tests.golden.models.mixtures import qwen3_moe
from tests.golden.models.qwen import qwen3
from tests.golden.models.state_spaces import nemotron_h_moe
from tests.golden.models.tiny import TinyModel

MODELOPT: dict[str, Any] = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
    "ignore": ["lm_head"],
}
LLM_COMPRESSOR: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
        }
    },
    "ignore": ["lm_head"],
}

NVFP4_CASES = (
    TinyModel(
        "nvfp4-qwen3",
        qwen3(hidden_size=112, intermediate_size=144, head_dim=32, quantization_config=MODELOPT),
        dtype="bf16",
        num_shards=2,
    ),
    TinyModel(
        "nvfp4-qwen3-moe",
        qwen3_moe(
            hidden_size=80,
            intermediate_size=96,
            moe_intermediate_size=48,
            head_dim=16,
            num_experts=5,
            num_experts_per_tok=2,
            quantization_config=MODELOPT,
        ),
        dtype="bf16",
        seed=3,
    ),
    TinyModel(
        "nvfp4-llm-compressor",
        qwen3(hidden_size=96, intermediate_size=208, head_dim=16, quantization_config=LLM_COMPRESSOR),
        dtype="f16",
        seed=2,
    ),
    TinyModel(
        "nvfp4-nemotron-h-latent",
        nemotron_h_moe(
            hidden_size=80,
            layers_block_type=["linear_attention", "linear_attention", "full_attention", "moe"],
            mamba_head_dim=24,
            moe_intermediate_size=48,
            moe_shared_expert_intermediate_size=64,
            moe_latent_size=32,
            n_routed_experts=5,
            num_experts_per_tok=2,
            quantization_config=MODELOPT
            | {"ignore": ["lm_head", "backbone.layers.1.mixer.*", "backbone.layers.2.mixer.*"]},
        ),
        dtype="bf16",
    ),
)
