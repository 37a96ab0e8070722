"""What llama.cpp's converter makes of Kimi Linear.

Source: ``conversion/kimi_linear.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.kimi_tensors import KIMI

Array = NDArray[np.float32]


def with_converted_kimi(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Return the tensors with negative rates, biases of times as the ``gguf`` package calls them, and filters
    with two more axes.
    """
    if config["model_type"] != KIMI:
        return dict(tensors)
    found = {}
    for name, tensor in tensors.items():
        kind = name.rpartition(".")[2]
        stored = -np.exp(tensor) if kind == "A_log" else tensor
        if name.endswith("_conv1d.weight"):
            stored = tensor.reshape(1, len(tensor), 1, -1)
        found[name.replace("dt_bias", "dt_proj.bias")] = np.ascontiguousarray(stored)
    return found


def add_kimi_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of a Kimi Linear."""
    linear, rotated = config["linear_attn_config"], config["qk_rope_head_dim"]
    layers = range(1, config["num_hidden_layers"] + 1)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv([int(layer in linear["full_attn_layers"]) for layer in layers])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_ssm_conv_kernel(linear["short_conv_kernel_size"])
    writer.add_kda_head_dim(linear["head_dim"])
    writer.add_kv_lora_rank(config["kv_lora_rank"])
    writer.add_rope_dimension_count(rotated)
    writer.add_key_length(config["kv_lora_rank"] + rotated)
    writer.add_key_length_mla(config["qk_nope_head_dim"] + rotated)
    writer.add_value_length_mla(config["v_head_dim"])
    writer.add_expert_count(config["num_experts"])
    writer.add_expert_used_count(config["num_experts_per_token"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_expert_shared_count(config["num_shared_experts"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
