"""Models in FP8: scales of blocks of 128 x 128 (Qwen3, DeepSeek), of rows, of matrices (llm-compressor).

Sizes are not multiples of 128, so that the last blocks of rows and of columns are smaller.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.indexers import deepseek_v32
from tests.golden.models.latents import LITE_ROPE, deepseek_v3
from tests.golden.models.mixtures import qwen3_moe
from tests.golden.models.qwen import qwen3
from tests.golden.models.tiny import TinyModel

BLOCKS: dict[str, Any] = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}


def compressed(strategy: str) -> dict[str, Any]:
    """A ``quantization_config`` as llm-compressor writes it."""
    weights = {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True, "dynamic": False}
    activations = {**weights, "strategy": "token", "dynamic": True}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }


FP8_CASES = (
    TinyModel(
        "fp8-qwen3",
        qwen3(hidden_size=136, intermediate_size=276, head_dim=38, quantization_config=BLOCKS),
        dtype="bf16",
        num_shards=2,
    ),
    TinyModel(
        "fp8-qwen3-moe",
        qwen3_moe(
            hidden_size=132,
            intermediate_size=140,
            moe_intermediate_size=134,
            num_experts=5,
            num_experts_per_tok=2,
            quantization_config=BLOCKS,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-deepseek-v3",
        deepseek_v3(
            hidden_size=140,
            intermediate_size=150,
            num_attention_heads=3,
            num_key_value_heads=3,
            q_lora_rank=130,
            kv_lora_rank=132,
            qk_nope_head_dim=34,
            v_head_dim=22,
            moe_intermediate_size=129,
            n_routed_experts=4,
            n_group=2,
            topk_group=1,
            num_experts_per_tok=2,
            rope_scaling=LITE_ROPE,
            quantization_config=BLOCKS,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-rows",
        qwen3(hidden_size=100, head_dim=26, quantization_config=compressed("channel")),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-whole",
        qwen3(hidden_size=100, intermediate_size=130, quantization_config=compressed("tensor")),
        dtype="f16",
    ),
    TinyModel(
        "fp8-deepseek-v32",
        deepseek_v32(
            hidden_size=140,
            q_lora_rank=130,
            index_n_heads=11,
            index_head_dim=26,
            index_topk=9,
            rope_scaling=LITE_ROPE,
            quantization_config=BLOCKS,
        ),
        dtype="bf16",
    ),
)
