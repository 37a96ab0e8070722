"""Models in FP8: scales of blocks of 128 x 128 (Qwen3, Qwen3-Next, Qwen3.5, DeepSeek, GLM-5), of rows
(GLM-4.5, as llm-compressor writes them), of matrices (llm-compressor; Nemotron 3, as ModelOpt writes it).
One model of DeepSeek-V4 has experts in MXFP4.

Sizes are not multiples of 128, so that the last blocks of rows and of columns are smaller. In tensors with
rows of each head in turn, blocks end within the rows of queries, keys, values and gates.
"""

from __future__ import annotations

from typing import Any

from tests.golden.models.compressed import CHOOSING, SEEING_ALL, WINDOWED, deepseek_v4
from tests.golden.models.hybrids import qwen3_5, qwen3_5_moe, qwen3_next
from tests.golden.models.indexers import deepseek_v32, glm_moe_dsa
from tests.golden.models.latents import LITE_ROPE, deepseek_v3
from tests.golden.models.mixtures import glm4_moe, qwen3_moe
from tests.golden.models.qwen import qwen3
from tests.golden.models.state_spaces import nemotron_h_moe
from tests.golden.models.tiny import TinyModel

BLOCKS: dict[str, Any] = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}
POWERS_OF_TWO: dict[str, Any] = BLOCKS | {"scale_fmt": "ue8m0"}
"""As DeepSeek-V3.1 and later: scales are powers of two, in DeepSeek-V4 of a type that has nothing else."""
WITH_STATES: dict[str, Any] = BLOCKS | {
    "modules_to_not_convert": [
        "lm_head",
        *(f"model.layers.{layer}.linear_attn.in_proj_{name}" for layer in (0, 1) for name in "ab"),
    ]
}
"""As the releases of Qwen3.5: shares and decays of heads stay in bf16."""
WITH_FUSED_STATES: dict[str, Any] = BLOCKS | {
    "modules_to_not_convert": [
        "lm_head",
        *(f"model.layers.{layer}.linear_attn.in_proj_ba" for layer in (0, 1)),
    ]
}
"""The same for Qwen3-Next."""
MODELOPT: dict[str, Any] = {
    "quant_method": "modelopt",
    "quant_algo": "FP8",
    "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
    "ignore": ["lm_head", "backbone.layers.1.mixer.*", "backbone.layers.2.mixer.*"],
}
"""As Nemotron 3: layers of attention, and state spaces before them, stay in bf16."""


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
        seed=10,
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
            quantization_config=POWERS_OF_TWO,
        ),
        dtype="bf16",
        seed=7,
    ),
    TinyModel(
        "fp8-qwen3-5-moe",
        qwen3_5_moe(
            hidden_size=136,
            linear_key_head_dim=18,
            linear_value_head_dim=34,
            moe_intermediate_size=34,
            shared_expert_intermediate_size=130,
            num_experts=5,
            num_experts_per_tok=2,
            quantization_config=WITH_STATES,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-glm4-moe",
        glm4_moe(
            hidden_size=100,
            intermediate_size=130,
            moe_intermediate_size=29,
            head_dim=28,
            num_hidden_layers=2,
            n_routed_experts=5,
            num_experts_per_tok=2,
            quantization_config=compressed("channel"),
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-nemotron-h-moe",
        nemotron_h_moe(
            hidden_size=100,
            layers_block_type=["linear_attention", "linear_attention", "full_attention", "moe"],
            mamba_head_dim=22,
            moe_intermediate_size=35,
            n_routed_experts=5,
            num_experts_per_tok=2,
            quantization_config=MODELOPT,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-qwen3-next",
        qwen3_next(
            hidden_size=136,
            head_dim=40,
            linear_key_head_dim=18,
            linear_value_head_dim=34,
            moe_intermediate_size=34,
            shared_expert_intermediate_size=130,
            num_experts=5,
            num_experts_per_tok=2,
            quantization_config=WITH_FUSED_STATES,
        ),
        dtype="bf16",
        seed=5,
    ),
    TinyModel(
        "fp8-qwen3-5",
        qwen3_5(
            hidden_size=136,
            intermediate_size=150,
            head_dim=40,
            linear_key_head_dim=18,
            linear_value_head_dim=34,
            quantization_config=WITH_STATES,
        ),
        dtype="bf16",
    ),
    TinyModel(
        "fp8-glm-moe-dsa",
        glm_moe_dsa(
            hidden_size=140,
            num_hidden_layers=4,
            q_lora_rank=130,
            index_n_heads=11,
            index_head_dim=26,
            index_topk=9,
            n_routed_experts=4,
            num_experts_per_tok=2,
            indexer_types=["full", "shared", "full", "shared"],
            quantization_config=POWERS_OF_TWO,
        ),
        dtype="bf16",
        seed=9,
    ),
    TinyModel(
        "fp8-deepseek-v4",
        deepseek_v4(
            hidden_size=140,
            moe_intermediate_size=133,
            num_hidden_layers=3,
            head_dim=70,
            qk_rope_head_dim=18,
            q_lora_rank=130,
            o_lora_rank=75,
            layer_types=[CHOOSING, SEEING_ALL, CHOOSING],
            index_head_dim=26,
            mlp_layer_types=["hash_moe", "moe", "moe"],
            n_routed_experts=4,
            num_experts_per_tok=2,
            expert_dtype="fp8",
            quantization_config=BLOCKS,
        ),
        dtype="bf16",
        seed=5,
    ),
    TinyModel(
        "fp8-deepseek-v4-fp4",
        deepseek_v4(
            hidden_size=160,
            moe_intermediate_size=96,
            num_hidden_layers=3,
            num_attention_heads=3,
            head_dim=54,
            qk_rope_head_dim=14,
            q_lora_rank=130,
            o_groups=3,
            o_lora_rank=45,
            layer_types=[CHOOSING, WINDOWED, CHOOSING],
            index_head_dim=22,
            mlp_layer_types=["hash_moe", "moe", "moe"],
            n_routed_experts=8,
            num_experts_per_tok=2,
            expert_dtype="fp4",
            quantization_config=POWERS_OF_TWO,
        ),
        dtype="bf16",
        seed=2,
    ),
)

WITH_FP4_EXPERTS = FP8_CASES[-1]
"""As DeepSeek-V4-Flash and DeepSeek-V4-Pro; the model before it is as DeepSeek-V4-Flash-Base."""
