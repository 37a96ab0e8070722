"""Names and shapes of the tensors of hybrids with the gated delta rule, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

HYBRIDS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
"""The model types that have them."""
STATE_NORM = "linear_attn.norm.weight"
"""The only norm of these models whose weight is not stored without 1."""


def keeps_state(config: Mapping[str, Any], layer: int) -> bool:
    """Whether a layer has linear attention."""
    return config["model_type"] in HYBRIDS and config["layer_types"][layer] == "linear_attention"


def delta_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of a layer with linear attention, in file order."""
    hidden, heads = config["hidden_size"], config["linear_num_value_heads"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = heads * config["linear_value_head_dim"]
    if config["model_type"] == "qwen3_next":
        yield "linear_attn.in_proj_qkvz.weight", (2 * keys + 2 * values, hidden)
        yield "linear_attn.in_proj_ba.weight", (2 * heads, hidden)
    else:
        yield "linear_attn.in_proj_qkv.weight", (2 * keys + values, hidden)
        yield "linear_attn.in_proj_z.weight", (values, hidden)
        yield "linear_attn.in_proj_b.weight", (heads, hidden)
        yield "linear_attn.in_proj_a.weight", (heads, hidden)
    yield "linear_attn.conv1d.weight", (2 * keys + values, 1, config["linear_conv_kernel_dim"])
    yield "linear_attn.A_log", (heads,)
    yield "linear_attn.dt_bias", (heads,)
    yield STATE_NORM, (config["linear_value_head_dim"],)
    yield "linear_attn.out_proj.weight", (hidden, values)
