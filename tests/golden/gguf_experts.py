"""What llama.cpp's converter makes of mixtures of experts: one tensor for the matrices of all experts.

Source: ``convert_hf_to_gguf.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

EXPERT = re.compile(r"\.experts\.(\d+)\.")
FUSED = re.compile(r"\.experts\.(gate_up|down)_proj(_bias)?$")


def with_joined_experts(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> dict[str, Array]:
    """Stack the matrices of experts under the names that the ``gguf`` package knows, and split fused ones."""
    found: dict[str, Array] = {}
    stacks: dict[str, list[Array]] = {}
    is_gpt_oss = config["model_type"] == "gpt_oss"
    for name, tensor in tensors.items():
        if FUSED.search(name):
            found |= _of_all(name, tensor, is_gpt_oss=is_gpt_oss)
        elif EXPERT.search(name):
            stacks.setdefault(_stack_name(name), []).append(tensor)
        elif name.endswith("input_linear.weight"):
            found |= _split(name, tensor)
        elif name.endswith("e_score_correction_bias"):
            found[name.removesuffix("_bias") + ".bias"] = tensor
        elif name.endswith("shared_expert_gate.weight"):
            found[name] = tensor[0]
        else:
            found[name] = tensor
    return found | {name: np.stack(experts) for name, experts in stacks.items()}


def _stack_name(name: str) -> str:
    return EXPERT.sub(".experts.", name).replace("backbone.", "model.").replace(".mixer.", ".mlp.")


def _split(name: str, tensor: Array) -> dict[str, Array]:
    """Gate and up matrices, of experts or of the shared one."""
    halves = np.split(tensor, 2, axis=-2)
    layer, _, _ = name.rpartition(".block_sparse_moe." if "block_sparse_moe" in name else ".shared_mlp.")
    names = (
        ("block_sparse_moe.experts.w1", "block_sparse_moe.experts.w3")
        if "block_sparse_moe" in name
        else ("mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj")
    )
    return {f"{layer}.{new}.weight": half for new, half in zip(names, halves, strict=True)}


def _of_all(name: str, tensor: Array, *, is_gpt_oss: bool) -> dict[str, Array]:
    """Return matrices ``[out, in]``, gates and up matrices apart.

    Those of gpt-oss are transposed, and their rows alternate.
    """
    module = name.removesuffix("_bias")
    kind = "weight" if module == name else "bias"
    rows = tensor.swapaxes(1, 2) if is_gpt_oss and kind == "weight" else tensor
    if module.endswith("down_proj"):
        return {f"{module}.{kind}": np.ascontiguousarray(rows)}
    gates, ups = (rows[:, 0::2], rows[:, 1::2]) if is_gpt_oss else np.split(rows, 2, axis=1)
    halves = {"gate_proj": gates, "up_proj": ups}
    base = module.removesuffix("gate_up_proj")
    return {f"{base}{half}.{kind}": np.ascontiguousarray(part) for half, part in halves.items()}


def add_expert_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write the keys of a mixture; none for other models."""
    fields = ("num_experts", "num_local_experts", "n_routed_experts")
    count = next((config[name] for name in fields if name in config), None)
    if not count:
        return
    writer.add_expert_count(count)
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if config["model_type"] == "gpt_oss":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    shared = config.get("shared_expert_intermediate_size", config.get("shared_intermediate_size"))
    if shared is not None:
        writer.add_expert_shared_feed_forward_length(shared)
    if "first_k_dense_replace" in config:
        is_softmax = config["model_type"] == "deepseek_v2"
        kinds = gguf.ExpertGatingFuncType
        writer.add_expert_gating_func(kinds.SOFTMAX if is_softmax else kinds.SIGMOID)
        writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    if config["model_type"] == "nemotron_h":
        writer.add_expert_shared_feed_forward_length(config["moe_shared_expert_intermediate_size"])
        if config.get("moe_latent_size"):
            writer.add_moe_latent_size(config["moe_latent_size"])
    if "n_routed_experts" in config:
        writer.add_expert_shared_count(config["n_shared_experts"])
        writer.add_expert_weights_norm(config["norm_topk_prob"])
        writer.add_expert_weights_scale(config["routed_scaling_factor"])
        writer.add_expert_group_count(config.get("n_group", 1))
        writer.add_expert_group_used_count(config.get("topk_group", 1))
