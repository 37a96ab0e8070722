"""The fields of a ``config.json`` that the plan needs."""

from __future__ import annotations

from typing import Any

import msgspec

from llmd.api import CheckpointError
from llmd.api.plugins import Config

FILE = "config.json"


class Sizes(msgspec.Struct, frozen=True):
    """The sizes of a model."""

    hidden: int
    """Elements of a row of the residual stream."""
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    """Elements of a row inside the feed-forward network."""
    vocab: int
    context_len: int
    """The longest context in tokens."""
    eps: float
    theta: float

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


def read_sizes(config: Config) -> Sizes:
    """Read the sizes.

    Raises:
        CheckpointError: a field is missing, or has a value that cannot be.
    """
    heads = _number(config, "num_attention_heads")
    sizes = Sizes(
        hidden=_number(config, "hidden_size"),
        layers=_number(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=_number(config, "num_key_value_heads", heads),
        ffn=_number(config, "intermediate_size"),
        vocab=_number(config, "vocab_size"),
        context_len=_number(config, "max_position_embeddings"),
        eps=float(config.get("rms_norm_eps", 1e-6)),
        theta=float(config.get("rope_theta", 10000.0)),
    )
    if sizes.hidden % sizes.heads or sizes.heads % sizes.kv_heads:
        raise CheckpointError(
            f"{sizes.heads} heads and {sizes.kv_heads} key-value heads do not divide hidden_size {sizes.hidden}",
            file=FILE,
            hint="the file is damaged: fetch it again",
        )
    return sizes


def _number(config: Config, name: str, default: int | None = None) -> int:
    value: Any = config.get(name, default)
    if not isinstance(value, int) or value < 1:
        raise CheckpointError(
            f"{name} is {value!r}, expected a positive integer", file=FILE, hint="fetch the file again"
        )
    return value
