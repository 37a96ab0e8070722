"""Names, shapes and spreads of a tiny encoder's tensors:
what transformers would write for its configuration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

Shape = tuple[int, ...]

PREFIXES = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta."}
"""Model types of encoders, and what classes with a head put before the names of the tensors below it."""

GAINS = {"query": 2.0, "key": 2.0, "classifier": 3.0, "out_proj": 3.0}
"""Output over input deviation, elsewhere 1:
attention is peaked, so that each position and each text counts.
"""


def encoder_shapes(config: Mapping[str, Any]) -> dict[str, Shape]:
    """Name and shape of every tensor in the checkpoint of that configuration, in file order."""
    is_bare = config["architectures"][0].endswith("Model")
    prefix = "" if is_bare else PREFIXES[config["model_type"]]
    shapes = {f"{prefix}{name}": shape for name, shape in _body(config)}
    return shapes | dict(_head(config, is_bare=is_bare))


def encoder_spread(name: str, shape: Shape) -> tuple[float, float]:
    """Mean and standard deviation of a tensor."""
    owner, kind = name.split(".")[-2:]
    if kind == "bias":
        return 0.0, 0.4
    if owner == "LayerNorm":
        return 1.0, 0.2
    if owner.endswith("embeddings"):
        return 0.0, 1.0
    return 0.0, GAINS.get(owner, 1.0) / math.sqrt(shape[1])


def _body(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    yield "embeddings.word_embeddings.weight", (config["vocab_size"], hidden)
    yield "embeddings.position_embeddings.weight", (config["max_position_embeddings"], hidden)
    yield "embeddings.token_type_embeddings.weight", (config["type_vocab_size"], hidden)
    yield from _norm("embeddings.LayerNorm", hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            yield from _linear(f"{at}attention.self.{name}", (hidden, hidden))
        yield from _linear(f"{at}attention.output.dense", (hidden, hidden))
        yield from _norm(f"{at}attention.output.LayerNorm", hidden)
        yield from _linear(f"{at}intermediate.dense", (inner, hidden))
        yield from _linear(f"{at}output.dense", (hidden, inner))
        yield from _norm(f"{at}output.LayerNorm", hidden)


def _head(config: Mapping[str, Any], *, is_bare: bool) -> Iterator[tuple[str, Shape]]:
    hidden, family = config["hidden_size"], config["model_type"]
    if is_bare or family == "bert":
        yield from _linear("pooler.dense" if is_bare else "bert.pooler.dense", (hidden, hidden))
    if not is_bare:
        if family != "bert":
            yield from _linear("classifier.dense", (hidden, hidden))
        out = "classifier" if family == "bert" else "classifier.out_proj"
        yield from _linear(out, (len(config["id2label"]), hidden))


def _linear(name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def _norm(name: str, hidden: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (hidden,)
    yield f"{name}.bias", (hidden,)
