"""Names and shapes of the tensors of latent attention, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite")
"""The model types that have them."""


def latent_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Name and shape of each tensor of the attention of a layer, in file order."""
    hidden, heads, rank = config["hidden_size"], config["num_attention_heads"], config["kv_lora_rank"]
    plain, rotated, value = (config[f"{name}_head_dim"] for name in ("qk_nope", "qk_rope", "v"))
    queries = heads * (plain + rotated)
    if low := config["q_lora_rank"]:
        yield from _linear("q_a_proj", low, hidden, config)
        yield "self_attn.q_a_layernorm.weight", (low,)
        yield "self_attn.q_b_proj.weight", (queries, low)
    else:
        yield "self_attn.q_proj.weight", (queries, hidden)
    yield from _linear("kv_a_proj_with_mqa", rank + rotated, hidden, config)
    yield "self_attn.kv_a_layernorm.weight", (rank,)
    yield "self_attn.kv_b_proj.weight", (heads * (plain + value), rank)
    yield from _linear("o_proj", hidden, heads * value, config)


def _linear(name: str, rows: int, cols: int, config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    yield f"self_attn.{name}.weight", (rows, cols)
    if config["attention_bias"]:
        yield f"self_attn.{name}.bias", (rows,)
