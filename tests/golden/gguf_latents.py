"""What llama.cpp's converter makes of latent attention.

Source: ``conversion/deepseek.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.latent_tensors import INDEXED, LATENT

Array = NDArray[np.float32]


def with_split_latents(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Return the tensors with the matrices of keys, transposed, and those of values apart."""
    found: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if not name.endswith("kv_b_proj.weight"):
            found[name] = tensor
            continue
        by_head = tensor.reshape(config["num_attention_heads"], -1, config["kv_lora_rank"])
        keys, values = np.split(by_head, [config["qk_nope_head_dim"]], axis=1)
        base = name.removesuffix("kv_b_proj.weight")
        found[f"{base}k_b_proj.weight"] = np.ascontiguousarray(keys.swapaxes(1, 2))
        found[f"{base}v_b_proj.weight"] = np.ascontiguousarray(values)
    return found


def join_latents(tensors: dict[str, Array]) -> None:
    """Give the tensors of a file the form that older files have: one tensor with the rows of both."""
    for name in [name for name in tensors if name.endswith("attn_k_b.weight")]:
        base = name.removesuffix("k_b.weight")
        keys, values = tensors.pop(name).swapaxes(1, 2), tensors.pop(f"{base}v_b.weight")
        both = np.concatenate([keys, values], axis=1)
        tensors[f"{base}kv_b.weight"] = both.reshape(-1, both.shape[-1])


def older_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as older files have them: the sizes of heads."""
    heads = config["num_attention_heads"]
    return {
        "deepseek2.attention.key_length": config["qk_nope_head_dim"] + config["qk_rope_head_dim"],
        "deepseek2.attention.value_length": config["v_head_dim"],
        "deepseek2.attention.key_length_mla": None,
        "deepseek2.attention.value_length_mla": None,
        "deepseek2.attention.head_count_kv": heads,
    }


def add_latent_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of latent attention; none for other models."""
    if config["model_type"] not in LATENT:
        return
    rank, rotated = config["kv_lora_rank"], config["qk_rope_head_dim"]
    prefix = f"{writer.arch}.attention"
    for name in ("head_count_kv", "key_length", "value_length"):
        writer.kv_data[0].pop(f"{prefix}.{name}", None)
    writer.kv_data[0].pop(f"{writer.arch}.rope.dimension_count", None)
    writer.add_head_count_kv(1)
    writer.add_key_length(rank + rotated)
    writer.add_value_length(rank)
    writer.add_key_length_mla(config["qk_nope_head_dim"] + rotated)
    writer.add_value_length_mla(config["v_head_dim"])
    writer.add_rope_dimension_count(rotated)
    writer.add_kv_lora_rank(rank)
    if config["q_lora_rank"]:
        writer.add_q_lora_rank(config["q_lora_rank"])
    if scaling := config.get("rope_scaling"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])
    if config["model_type"] in INDEXED:
        _add_indexer_keys(writer, config)


def _add_indexer_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    writer.add_indexer_head_count(config["index_n_heads"])
    writer.add_indexer_key_length(config["index_head_dim"])
    writer.add_indexer_top_k(config["index_topk"])
    if types := config.get("indexer_types"):
        writer.add_array(f"{writer.arch}.attention.indexer.types", [kind == "full" for kind in types])
