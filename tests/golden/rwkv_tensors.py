"""Names, shapes and spreads of the tensors of RWKV-7, as the checkpoints of fla have them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

RWKV7 = "rwkv7"
INPUTS = "rwkvag"
SPREADS: Mapping[str, tuple[float, float]] = {
    **{f"x_{value}": (0.5, 0.2) for value in INPUTS},
    "k_k": (0.7, 0.2),
    "k_a": (0.8, 0.2),
    "r_k": (0.3, 0.4),
    "bias": (0.0, 0.7),
}
"""Mean and standard deviation of tensors by their last name."""
GAINS: Mapping[str, float] = {"embeddings": 1.0, "lm_head": 2.0, "key": 1.4, "0": 1.5, "2": 1.5}
"""Output over input deviation of matrices by the last name of their module."""


def rwkv_shapes(config: Mapping[str, Any]) -> dict[str, Shape]:
    """Name and shape of every tensor, in file order."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes: dict[str, Shape] = {"model.embeddings.weight": (vocab, hidden)}
    shapes |= _norm("model.layers.0.pre_norm", config)
    for layer in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in _layer(config, layer)}
    shapes |= _norm("model.norm", config)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def rwkv_spread(name: str, shape: Shape, gains: Mapping[str, float]) -> tuple[float, float]:
    """Mean and standard deviation of a tensor."""
    module, kind = name.split(".")[-2:]
    if "norm" in module:
        return (1.0, 0.2) if kind == "weight" else (0.0, 0.3)
    if kind != "weight":
        return SPREADS[kind]
    gain = {**GAINS, **gains}.get(module, 1.0)
    return 0.0, gain if module == "embeddings" else gain / math.sqrt(shape[-1])


def _layer(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, Shape]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    yield from _norm("attn_norm", config).items()
    for value in INPUTS:
        yield f"attn.x_{value}", (1, 1, hidden)
    yield "attn.k_k", (hidden,)
    yield "attn.k_a", (hidden,)
    yield "attn.r_k", (hidden // config["head_dim"], config["head_dim"])
    for name in "rkvo":
        yield f"attn.{name}_proj.weight", (hidden, hidden)
    for name, rank in (("w", "decay"), ("v", "v"), ("a", "a"), ("g", "gate")):
        if layer or name != "v":
            yield from _low_rank(f"attn.{name}_lora.lora", hidden, config[f"{rank}_low_rank_dim"], name)
    yield "attn.g_norm.weight", (hidden,)
    yield "attn.g_norm.bias", (hidden,)
    yield from _norm("ffn_norm", config).items()
    yield "ffn.x_k", (hidden,)
    yield "ffn.key.weight", (inner, hidden)
    yield "ffn.value.weight", (hidden, inner)


def _low_rank(module: str, hidden: int, rank: int, name: str) -> Iterator[tuple[str, Shape]]:
    yield f"{module}.0.weight", (rank, hidden)
    yield f"{module}.2.weight", (hidden, rank)
    if name != "g":
        yield f"{module}.2.bias", (hidden,)


def _norm(module: str, config: Mapping[str, Any]) -> dict[str, Shape]:
    kinds = ("weight", "bias") if config["norm_bias"] else ("weight",)
    return {f"{module}.{kind}": (config["hidden_size"],) for kind in kinds}
