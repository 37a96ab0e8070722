"""Names and shapes of the tensors of Gemma 4, as published checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

GEMMA4 = "gemma4_text"
GAINS = {
    "q_norm": 0.4,
    "k_norm": 0.4,
    "post_feedforward_layernorm_2": 0.1,
    "post_per_layer_input_norm": 0.3,
    "embed_tokens_per_layer": 0.3,
    "layer_scalar": 1.1,
    "scale": 1.2,
    "per_expert_scale": 1.3,
    "proj": 2.0,
}
"""As `tests.golden.tensors.GAINS`. Norms of queries and keys have small ones, since scores are not scaled."""
FACTORS = ("layer_scalar", "scale", "per_expert_scale")
"""Tensors that multiply, like norms."""


def model_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor outside the layers that other families lack."""
    if width := config["hidden_size_per_layer_input"]:
        whole = config["num_hidden_layers"] * width
        yield "model.embed_tokens_per_layer.weight", (config["vocab_size_per_layer_input"], whole)
        yield "model.per_layer_model_projection.weight", (whole, config["hidden_size"])
        yield "model.per_layer_projection_norm.weight", (width,)


def layer_shapes(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of a layer, in file order."""
    hidden = config["hidden_size"]
    shares = layer >= config["num_hidden_layers"] - config["num_kv_shared_layers"]
    yield "layer_scalar", (1,)
    yield from _attention(config, layer, shares=shares)
    inner = config["intermediate_size"] * (2 if shares and config.get("use_double_wide_mlp") else 1)
    yield "mlp.gate_proj.weight", (inner, hidden)
    yield "mlp.up_proj.weight", (inner, hidden)
    yield "mlp.down_proj.weight", (hidden, inner)
    names = ["input", "post_attention", "pre_feedforward", "post_feedforward"]
    for name in names:
        yield f"{name}_layernorm.weight", (hidden,)
    if config.get("enable_moe_block"):
        yield from _experts(config)
    if width := config["hidden_size_per_layer_input"]:
        yield "per_layer_input_gate.weight", (width, hidden)
        yield "per_layer_projection.weight", (hidden, width)
        yield "post_per_layer_input_norm.weight", (hidden,)


def _attention(config: Mapping[str, Any], layer: int, *, shares: bool) -> Iterator[tuple[str, Shape]]:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    is_full = config["layer_types"][layer] == "full_attention"
    value_is_key = is_full and config.get("attention_k_eq_v", False)
    head_dim = config["global_head_dim" if is_full else "head_dim"]
    kv_heads = config["num_global_key_value_heads" if value_is_key else "num_key_value_heads"]
    widths = {"q": heads * head_dim}
    if not shares:
        widths["k"] = kv_heads * head_dim
    if not shares and not value_is_key:
        widths["v"] = kv_heads * head_dim
    for name, width in widths.items():
        yield from _linear(config, f"{name}_proj", (width, hidden))
    yield from _linear(config, "o_proj", (hidden, heads * head_dim))
    for name in ("q", "k")[: len(widths)]:
        yield f"self_attn.{name}_norm.weight", (head_dim,)


def _linear(config: Mapping[str, Any], name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    yield f"self_attn.{name}.weight", shape
    if config["attention_bias"]:
        yield f"self_attn.{name}.bias", shape[:1]


def _experts(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    hidden, inner, count = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    yield "router.scale", (hidden,)
    yield "router.per_expert_scale", (count,)
    yield "router.proj.weight", (count, hidden)
    yield "experts.gate_up_proj", (count, 2 * inner, hidden)
    yield "experts.down_proj", (count, hidden, inner)
    for name in (
        "post_feedforward_layernorm_1",
        "pre_feedforward_layernorm_2",
        "post_feedforward_layernorm_2",
    ):
        yield f"{name}.weight", (hidden,)
