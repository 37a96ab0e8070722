"""What llama.cpp's converter makes of DeepSeek-V4: names, keys, and tables of integers in 32 bits.

The ``gguf`` package does not know this family yet. Source: ``conversion/deepseek.py`` and
``gguf-py/gguf/constants.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.golden.compressed_tensors import TABLE
from tests.golden.tensors import as_float32

Array = NDArray[np.float32]

SQRT_SOFTPLUS = 4
"""The number of this score."""
ENDS = {
    "embed.weight": "token_embd",
    "norm.weight": "output_norm",
    "head.weight": "output",
    "hc_head_fn": "output_hc_fn",
    "hc_head_base": "output_hc_base",
    "hc_head_scale": "output_hc_scale",
}
LAYER = {
    "hc_attn_fn": "hc_attn_fn",
    "hc_attn_base": "hc_attn_base",
    "hc_attn_scale": "hc_attn_scale",
    "hc_ffn_fn": "hc_ffn_fn",
    "hc_ffn_base": "hc_ffn_base",
    "hc_ffn_scale": "hc_ffn_scale",
    "attn_norm.weight": "attn_norm",
    "attn.wq_a.weight": "attn_q_a",
    "attn.q_norm.weight": "attn_q_a_norm",
    "attn.wq_b.weight": "attn_q_b",
    "attn.wkv.weight": "attn_kv",
    "attn.kv_norm.weight": "attn_kv_a_norm",
    "attn.wo_a.weight": "attn_output_a",
    "attn.wo_b.weight": "attn_output_b",
    "attn.attn_sink": "attn_sinks",
    "attn.compressor.ape": "attn_compressor_ape",
    "attn.compressor.wkv.weight": "attn_compressor_kv",
    "attn.compressor.wgate.weight": "attn_compressor_gate",
    "attn.compressor.norm.weight": "attn_compressor_norm",
    "attn.indexer.wq_b.weight": "indexer.attn_q_b",
    "attn.indexer.weights_proj.weight": "indexer.proj",
    "attn.indexer.compressor.ape": "indexer_compressor_ape",
    "attn.indexer.compressor.wkv.weight": "indexer_compressor_kv",
    "attn.indexer.compressor.wgate.weight": "indexer_compressor_gate",
    "attn.indexer.compressor.norm.weight": "indexer_compressor_norm",
    "ffn_norm.weight": "ffn_norm",
    "ffn.gate.weight": "ffn_gate_inp",
    "ffn.gate.tid2eid": "ffn_gate_tid2eid",
    "ffn.experts.w1.weight": "ffn_gate_exps",
    "ffn.experts.w2.weight": "ffn_down_exps",
    "ffn.experts.w3.weight": "ffn_up_exps",
    "ffn.shared_experts.w1.weight": "ffn_gate_shexp",
    "ffn.shared_experts.w2.weight": "ffn_down_shexp",
    "ffn.shared_experts.w3.weight": "ffn_up_shexp",
}
"""Tensors of a layer but for the correction of scores, which is called ``bias`` in both."""
EXPERT = re.compile(r"\.experts\.\d+\.")


def converted_tensors(drawn: Mapping[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Return the tensors by their names in the file, float32 but for int32 tables."""
    stacks: dict[str, list[NDArray[np.generic]]] = {}
    for name, stored in drawn.items():
        content = stored.astype(np.int32) if name.endswith(TABLE) else as_float32(stored)
        stacks.setdefault(EXPERT.sub(".experts.", name), []).append(content)
    joined = {name: np.stack(parts) if ".experts." in name else parts[0] for name, parts in stacks.items()}
    return {_name(name): np.ascontiguousarray(tensor) for name, tensor in joined.items()}


def _name(name: str) -> str:
    if name in ENDS:
        return f"{ENDS[name]}.weight"
    _, layer, tensor = name.split(".", 2)
    if tensor == "ffn.gate.bias":
        return f"blk.{layer}.exp_probs_b.bias"
    return f"blk.{layer}.{LAYER[tensor]}.weight"


def add_compressed_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of DeepSeek-V4."""
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    _add_positions(writer, config)
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_uint32(f"{writer.arch}.expert_gating_func", SQRT_SOFTPLUS)
    for experts in ("exp", "shexp"):
        limits = [config["swiglu_limit"]] * config["num_hidden_layers"]
        writer.add_array(f"{writer.arch}.swiglu_clamp_{experts}", limits)
    writer.add_indexer_head_count(config["index_n_heads"])
    writer.add_indexer_key_length(config["index_head_dim"])
    writer.add_indexer_top_k(config["index_topk"])
    strides = config["compress_ratios"][: config["num_hidden_layers"]]  # others are those of draft heads
    writer.add_array(f"{writer.arch}.attention.compress_ratios", strides)
    counts = {
        "attention.output_group_count": "o_groups",
        "attention.output_lora_rank": "o_lora_rank",
        "hyper_connection.count": "hc_mult",
        "hyper_connection.sinkhorn_iterations": "hc_sinkhorn_iters",
        "hash_layer_count": "num_hash_layers",
    }
    for key, field in counts.items():
        writer.add_uint32(f"{writer.arch}.{key}", config[field])
    writer.add_float32(f"{writer.arch}.hyper_connection.epsilon", config["hc_eps"])
    writer.add_uint32(f"{writer.arch}.embedding_length_out", config["hidden_size"] * config["hc_mult"])


def _add_positions(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_rope_dimension_count(config["qk_rope_head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_float32(f"{writer.arch}.attention.compress_rope_freq_base", config["compress_rope_theta"])
    rope = config.get("rope_scaling")
    if not rope:
        return
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(rope["factor"])
    writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if "beta_fast" in rope:
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
