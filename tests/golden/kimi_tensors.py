"""Names and shapes of the tensors of Kimi Linear, as its checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.golden.latent_tensors import latent_shapes

Shape = tuple[int, ...]

KIMI = "kimi_linear"


def kimi_shapes(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the first half of a layer, in file order."""
    linear = config["linear_attn_config"]
    if layer + 1 in linear["full_attn_layers"]:
        yield from latent_shapes(config, layer)
        return
    hidden, heads, dim = config["hidden_size"], linear["num_heads"], linear["head_dim"]
    for name in "qkv":
        yield f"self_attn.{name}_proj.weight", (heads * dim, hidden)
        yield f"self_attn.{name}_conv1d.weight", (heads * dim, 1, linear["short_conv_kernel_size"])
    yield "self_attn.A_log", (1, 1, heads, 1)
    yield "self_attn.dt_bias", (heads * dim,)
    yield "self_attn.b_proj.weight", (heads, hidden)
    for name in "fg":
        yield f"self_attn.{name}_a_proj.weight", (dim, hidden)
        yield f"self_attn.{name}_b_proj.weight", (heads * dim, dim)
    yield "self_attn.o_norm.weight", (dim,)
    yield "self_attn.o_proj.weight", (hidden, heads * dim)
