"""Names, shapes and spreads of the tensors of DeepSeek-V4, as its checkpoints have them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.weights import draw

DEEPSEEK_V4 = "deepseek_v4"
TABLE = "tid2eid"
"""The last name of the tables with the experts of each token."""
PUBLISHED = {
    0: "sliding_attention",
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
"""What attention of a layer does, by the tokens for each vector."""
MATRICES = ("wq_a", "wq_b", "wkv", "wo_a", "wo_b", "w1", "w2", "w3")
"""The modules whose matrices published checkpoints have in FP8 or FP4, unless they belong to a compressor."""
IN_F32 = ("ape", "attn_sink", "bias")
"""The tensors that these checkpoints have in f32, besides those of hyper-connections."""
HYPER = ("fn", "base", "scale")
"""The tensors of a hyper-connection."""
GAINS: Mapping[str, float] = {
    "embed": 1.0,
    "head": 2.0,
    "wq_b": 1.5,
    "wkv": 1.4,
    "wgate": 1.5,
    "w2": 0.9,
    "gate": 2.0,
}
"""Output over input deviation of matrices by the last name of their module."""
SPREADS: Mapping[str, tuple[float, float]] = {
    "attn_sink": (0.0, 1.0),
    "ape": (0.0, 1.0),
    "bias": (0.0, 0.3),
    "base": (0.0, 1.0),
    "scale": (1.0, 0.2),
}
"""Mean and standard deviation of other tensors by their last name."""

Shape = tuple[int, ...]


def compressed_shapes(config: Mapping[str, Any]) -> dict[str, Shape]:
    """Name and shape of every tensor, in file order."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes: dict[str, Shape] = {"embed.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        kind, by_token = layer_type(config, layer), is_routed_by_token(config, layer)
        inside = (*_mixer(config, kind), *_experts(config, by_token=by_token))
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in inside}
    shapes |= dict(_hyper("hc_head", config, config["hc_mult"], 1))
    shapes["norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["head.weight"] = (vocab, hidden)
    return shapes


def layer_type(config: Mapping[str, Any], layer: int) -> str:
    """What attention of a layer does."""
    if "layer_types" in config:
        return str(config["layer_types"][layer])
    return PUBLISHED[config["compress_ratios"][layer]]


def is_routed_by_token(config: Mapping[str, Any], layer: int) -> bool:
    """Whether a table has the experts of each token."""
    if "mlp_layer_types" in config:
        return bool(config["mlp_layer_types"][layer] == "hash_moe")
    return bool(layer < config["num_hash_layers"])


def compressed_spread(name: str, shape: Shape, gains: Mapping[str, float]) -> tuple[float, float]:
    """Mean and standard deviation of a tensor."""
    module, _, kind = name.rpartition(".")
    last = kind if kind != "weight" else module.rpartition(".")[2]
    if last.endswith("norm"):
        return 1.0, 0.2
    if kind.startswith("hc_"):
        part = kind.rpartition("_")[2]
        return SPREADS[part] if part in SPREADS else (0.0, 1.0 / math.sqrt(shape[-1]))
    if kind != "weight":
        return SPREADS[kind]
    gain = {**GAINS, **gains}.get(last, 1.0)
    return 0.0, gain if last == "embed" else gain / math.sqrt(shape[-1])


def published_form(config: Mapping[str, Any], name: str) -> str | None:
    """In what a published checkpoint has a tensor: ``fp8``, ``fp4`` or ``f32``; None for its own plain dtype.

    Source: headers of DeepSeek-V4-Flash and DeepSeek-V4-Pro, as issue 2034 of NVIDIA-NeMo/Automodel and
    public loaders of these checkpoints (github.com) name them.
    """
    if "quantization_config" not in config:
        return None
    module, _, kind = name.rpartition(".")
    if kind in IN_F32 or kind.startswith("hc_"):
        return "f32"
    if kind != "weight" or module.rpartition(".")[2] not in MATRICES or ".compressor." in name:
        return None
    return str(config["expert_dtype"]) if ".experts." in name else "fp8"


def draw_table(seed: int, name: str, shape: Shape, num_experts: int) -> NDArray[np.int64]:
    """Different experts for each token, ``[vocab, top_k]``."""
    values = draw(seed, name, (shape[0], num_experts), 0.0, 1.0)
    return np.argsort(values, axis=1, kind="stable")[:, : shape[1]].astype(np.int64)


def _mixer(config: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Shape]]:
    hidden, heads, dim = config["hidden_size"], config["num_attention_heads"], config["head_dim"]
    low, groups, group_rank = config["q_lora_rank"], config["o_groups"], config["o_lora_rank"]
    yield from _hyper("hc_attn", config, config["hc_mult"] * (config["hc_mult"] + 2), 3)
    yield "attn_norm.weight", (hidden,)
    yield "attn.wq_a.weight", (low, hidden)
    yield "attn.q_norm.weight", (low,)
    yield "attn.wq_b.weight", (heads * dim, low)
    yield "attn.wkv.weight", (dim, hidden)
    yield "attn.kv_norm.weight", (dim,)
    yield "attn.wo_a.weight", (groups * group_rank, heads * dim // groups)
    yield "attn.wo_b.weight", (hidden, groups * group_rank)
    yield "attn.attn_sink", (heads,)
    if kind == "heavily_compressed_attention":
        yield from _compressor("attn.compressor", config, kind, dim, series=1)
    if kind == "compressed_sparse_attention":
        index_heads, index_dim = config["index_n_heads"], config["index_head_dim"]
        yield from _compressor("attn.compressor", config, kind, dim, series=2)
        yield from _compressor("attn.indexer.compressor", config, kind, index_dim, series=2)
        yield "attn.indexer.wq_b.weight", (index_heads * index_dim, low)
        yield "attn.indexer.weights_proj.weight", (index_heads, hidden)


def _compressor(
    module: str, config: Mapping[str, Any], kind: str, dim: int, *, series: int
) -> Iterator[tuple[str, Shape]]:
    width = series * dim
    yield f"{module}.wkv.weight", (width, config["hidden_size"])
    yield f"{module}.wgate.weight", (width, config["hidden_size"])
    strides = {name: stride for stride, name in PUBLISHED.items()} | config.get("compress_rates", {})
    yield f"{module}.ape", (strides[kind], width)
    yield f"{module}.norm.weight", (dim,)


def _experts(config: Mapping[str, Any], *, by_token: bool) -> Iterator[tuple[str, Shape]]:
    hidden, inner, count = config["hidden_size"], config["moe_intermediate_size"], config["n_routed_experts"]
    yield from _hyper("hc_ffn", config, config["hc_mult"] * (config["hc_mult"] + 2), 3)
    yield "ffn_norm.weight", (hidden,)
    yield "ffn.gate.weight", (count, hidden)
    if by_token:
        yield f"ffn.gate.{TABLE}", (config["vocab_size"], config["num_experts_per_tok"])
    else:
        yield "ffn.gate.bias", (count,)
    for expert in (*(f"experts.{number}" for number in range(count)), "shared_experts"):
        yield f"ffn.{expert}.w1.weight", (inner, hidden)
        yield f"ffn.{expert}.w2.weight", (hidden, inner)
        yield f"ffn.{expert}.w3.weight", (inner, hidden)


def _hyper(name: str, config: Mapping[str, Any], rows: int, scales: int) -> Iterator[tuple[str, Shape]]:
    shapes = ((rows, config["hc_mult"] * config["hidden_size"]), (rows,), (scales,))
    yield from ((f"{name}_{part}", shape) for part, shape in zip(HYPER, shapes, strict=True))
