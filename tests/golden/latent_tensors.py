"""Names and shapes of the tensors of latent attention, as checkpoints have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

INDEXED = ("deepseek_v32", "glm_moe_dsa")
"""The model types with indexers."""
LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", *INDEXED)
"""The model types that have them."""


def latent_shapes(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, Shape]]:
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
    if config["model_type"] in INDEXED and has_indexer(config, layer):
        yield from _indexer(config)


def has_indexer(config: Mapping[str, Any], layer: int) -> bool:
    """Whether a layer chooses positions itself."""
    types = config.get("indexer_types")
    return types is None or types[layer] == "full"


def _indexer(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    heads, dim, hidden = config["index_n_heads"], config["index_head_dim"], config["hidden_size"]
    yield "self_attn.indexer.wq_b.weight", (heads * dim, config["q_lora_rank"])
    yield "self_attn.indexer.wk.weight", (dim, hidden)
    yield "self_attn.indexer.k_norm.weight", (dim,)
    yield "self_attn.indexer.k_norm.bias", (dim,)
    yield "self_attn.indexer.weights_proj.weight", (heads, hidden)


def _linear(name: str, rows: int, cols: int, config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    yield f"self_attn.{name}.weight", (rows, cols)
    if config["attention_bias"]:
        yield f"self_attn.{name}.bias", (rows,)
