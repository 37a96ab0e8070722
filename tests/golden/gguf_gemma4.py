"""What llama.cpp's converter makes of Gemma 4: keys with a value for each layer, and other names.

Source: ``convert_hf_to_gguf.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.gemma4_tensors import GEMMA4

Array = NDArray[np.float32]

NEVER = 1e30
"""The divisor of pairs that do not turn."""


def with_converted_names(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Give tensors the names that the ``gguf`` package knows; only those of Gemma 4 change."""
    if config["model_type"] != GEMMA4:
        return dict(tensors)
    return {_converted(name): tensor for name, tensor in tensors.items()}


def _converted(name: str) -> str:
    layer = name.split(".")[2] if ".layers." in name else ""
    if name.endswith("router.scale"):
        return f"blk.{layer}.ffn_gate_inp.scale"
    if name.endswith("per_expert_scale"):
        return f"blk.{layer}.ffn_down_exps.scale"
    return f"{name}.weight" if name.endswith("layer_scalar") or ".experts." in name else name


def rope_divisors(config: Mapping[str, Any]) -> list[float]:
    """What divides the frequency of each pair in layers of full attention."""
    dim, rope = config["global_head_dim"], config["rope_parameters"]["full_attention"]
    turning = int(dim * rope["partial_rotary_factor"] / 2)
    return [1.0] * turning + [NEVER] * (dim // 2 - turning)


def add_gemma4_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys after those that every decoder has."""
    sliding = [kind == "sliding_attention" for kind in config["layer_types"]]
    shared, inner = config["num_kv_shared_layers"], config["intermediate_size"]
    ropes = config["rope_parameters"]
    writer.add_rope_freq_base(ropes["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(ropes["sliding_attention"]["rope_theta"])
    writer.add_rope_dimension_count(config["global_head_dim"])
    writer.add_rope_dimension_count_swa(config["head_dim"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_sliding_window_pattern(sliding)
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    for add_full, add_swa in (
        (writer.add_key_length, writer.add_key_length_swa),
        (writer.add_value_length, writer.add_value_length_swa),
    ):
        add_full(config["global_head_dim"])
        add_swa(config["head_dim"])
    if config["final_logit_softcapping"] is not None:
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if config.get("use_double_wide_mlp"):
        first = len(sliding) - shared
        change(writer, "feed_forward_length", [inner * (1 + (n >= first)) for n in range(len(sliding))])
    if full := config.get("num_global_key_value_heads"):
        heads = [config["num_key_value_heads"] if slides else full for slides in sliding]
        change(writer, "attention.head_count_kv", heads)
    if config.get("enable_moe_block"):
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["top_k_experts"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])


def change(writer: gguf.GGUFWriter, key: str, values: list[int]) -> None:
    """Replace the single value of a key by one for each layer."""
    writer.kv_data[0].pop(f"gemma4.{key}")
    writer.add_array(f"gemma4.{key}", values)
