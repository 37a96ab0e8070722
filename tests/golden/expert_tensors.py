"""Names and shapes of the tensors of mixtures of experts, as published checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

MIXTURES = (
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "olmoe",
    "granitemoe",
    "granitemoeshared",
    "granitemoehybrid",
    "glm4_moe",
    "glm4_moe_lite",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm_moe_dsa",
    "gpt_oss",
    "qwen3_next",
    "qwen3_5_moe_text",
    "kimi_linear",
)
"""The model types that have them."""

CORRECTED = ("glm4_moe", "glm4_moe_lite", "deepseek_v3", "deepseek_v32", "glm_moe_dsa", "kimi_linear")
"""Those with corrections of scores."""

GAINS = {
    "gate": 2.0,
    "layer": 2.0,
    "w2": 0.9,
    "output_linear": 0.9,
    "e_score_correction_bias": 0.3,
    "router": 2.0,
    "experts.gate_up_proj": 1.2,
    "experts.down_proj": 0.6,
    "gate_up_proj_bias": 0.3,
    "down_proj_bias": 0.2,
    "sinks": 1.0,
}
"""As `tests.golden.tensors.GAINS`; large for routers, so that the experts of a row have different weights."""


def has_experts(config: Mapping[str, Any], layer: int) -> bool:
    """Whether a layer has experts in place of a feed-forward network."""
    family = config["model_type"]
    if family not in MIXTURES:
        return False
    if family == "granitemoehybrid":
        return bool(config["num_local_experts"])
    if "first_k_dense_replace" in config:
        return layer >= int(config["first_k_dense_replace"])
    sparse = (layer + 1) % config.get("decoder_sparse_step", 1) == 0
    return sparse and layer not in config.get("mlp_only_layers", [])


def expert_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the experts of a layer, in file order."""
    hidden, family = config["hidden_size"], config["model_type"]
    if family.startswith("granite"):
        yield from _granite(config)
        return
    if family == "gpt_oss":
        yield from _gpt_oss(config)
        return
    count = next(
        config[name] for name in ("num_experts", "num_local_experts", "n_routed_experts") if name in config
    )
    inner = config.get("moe_intermediate_size") or config["intermediate_size"]
    is_sparse_block = family in ("mixtral", "kimi_linear")
    block = "block_sparse_moe" if is_sparse_block else "mlp"
    names = ("w1", "w2", "w3") if is_sparse_block else ("gate_proj", "down_proj", "up_proj")
    yield f"{block}.gate.weight", (count, hidden)
    if family in CORRECTED:
        yield f"{block}.gate.e_score_correction_bias", (count,)
    if family == "qwen3_5_moe_text" and "quantization_config" not in config:
        yield f"{block}.experts.gate_up_proj", (count, 2 * inner, hidden)
        yield f"{block}.experts.down_proj", (count, hidden, inner)
        count = 0
    for expert in range(count):
        for name, shape in zip(names, ((inner, hidden), (hidden, inner), (inner, hidden)), strict=True):
            yield f"{block}.experts.{expert}.{name}.weight", shape
    if "shared_expert_intermediate_size" in config:
        yield from _shared("mlp.shared_expert", hidden, config["shared_expert_intermediate_size"])
        yield "mlp.shared_expert_gate.weight", (1, hidden)
    if "num_shared_experts" in config:
        yield from _shared(f"{block}.shared_experts", hidden, inner * config["num_shared_experts"])
    if "n_shared_experts" in config:
        yield from _shared("mlp.shared_experts", hidden, inner * config["n_shared_experts"])


def _granite(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Experts that are stored together, gates and up matrices in one tensor."""
    hidden, inner, count = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    yield "block_sparse_moe.router.layer.weight", (count, hidden)
    yield "block_sparse_moe.input_linear.weight", (count, 2 * inner, hidden)
    yield "block_sparse_moe.output_linear.weight", (count, hidden, inner)
    if shared := config.get("shared_intermediate_size"):
        yield "shared_mlp.input_linear.weight", (2 * shared, hidden)
        yield "shared_mlp.output_linear.weight", (hidden, shared)


def _gpt_oss(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Experts with biases, in MXFP4 or as transposed numbers; rows of gates and of up matrices alternate."""
    hidden, inner, count = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    yield "mlp.router.weight", (count, hidden)
    yield "mlp.router.bias", (count,)
    for name, rows, cols in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
        if "quantization_config" in config:
            yield f"mlp.experts.{name}_blocks", (count, rows, cols // 32, 16)
            yield f"mlp.experts.{name}_scales", (count, rows, cols // 32)
        else:
            yield f"mlp.experts.{name}", (count, cols, rows)
        yield f"mlp.experts.{name}_bias", (count, rows)


def _shared(module: str, hidden: int, inner: int) -> Iterator[tuple[str, Shape]]:
    yield f"{module}.gate_proj.weight", (inner, hidden)
    yield f"{module}.up_proj.weight", (inner, hidden)
    yield f"{module}.down_proj.weight", (hidden, inner)
