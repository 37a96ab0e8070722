"""The ops of an indexer, which limits latent attention to some positions (DeepSeek Sparse Attention)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import Indexer, KVGroup, LeftOut, Norm, Op, Rope, RopeTable, TensorRef
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerBuilder
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, MAX_LAYERS

CHOSEN = "chosen"
"""The value with the chosen positions, which layers without an indexer read too."""
KEY_EPS = 1e-6
"""Of the norm of index keys."""
TYPES = ("full", "shared")
"""Layers with an indexer, and those that use the positions of the layer with one before them."""


class Indexing(msgspec.Struct, frozen=True):
    """The sizes of the indexers of a model."""

    q_rank: int
    """Elements of the vector from which queries are made."""
    heads: int
    head_dim: int
    """Elements of an index query and of an index key; the first ones are rotated."""
    top_k: int
    """Most positions that a row attends to."""
    interleaved: bool
    """Pairs that are rotated are neighbours; else halves of the rotated elements."""
    layers: tuple[int, ...]
    """Layers with an indexer, ascending."""


def read_indexing(fields: ConfigFields, rotated: int, *, interleaved: bool) -> Indexing:
    """Read the sizes; ``rotated`` are the rotated elements of a key, ``interleaved`` is the default.

    Raises:
        CheckpointError: a size is missing or invalid.
        UnsupportedModelError: layers have other types than llmd knows.
    """
    head_dim = fields.size("index_head_dim", 128, at_most=MAX_HEAD_DIM)
    if head_dim < rotated:
        fields.contradict(f"index_head_dim {head_dim} is less than the {rotated} elements that are rotated")
    return Indexing(
        q_rank=fields.size("q_lora_rank"),
        heads=fields.size("index_n_heads"),
        head_dim=head_dim,
        top_k=fields.size("index_topk", 2048),
        interleaved=fields.flag("indexer_rope_interleave", interleaved),
        layers=_layers(fields),
    )


def _layers(fields: ConfigFields) -> tuple[int, ...]:
    """Return the layers with an indexer: by their types, or by an interval."""
    count = fields.size("num_hidden_layers", at_most=MAX_LAYERS)
    if "indexer_types" in fields:
        types = fields.names("indexer_types", count, TYPES)
    else:
        interval, offset = fields.size("index_topk_freq", 1), fields.count("index_skip_topk_offset", 2)
        skipped = (max(layer - offset + 1, 0) % interval for layer in range(count))
        types = [TYPES[bool(one)] for one in skipped]
    if types[0] != TYPES[0]:
        fields.contradict(
            "the first layer has no indexer, and no layer before it whose positions it could use"
        )
    return tuple(layer for layer, name in enumerate(types) if name == TYPES[0])


def index_group(indexing: Indexing, group: int) -> KVGroup:
    """Return the KV group of index keys."""
    return KVGroup(group, None, 1, indexing.head_dim, indexing.layers, kind="latent")


def unused_indexers(indexing: Indexing, num_layers: int) -> tuple[LeftOut, ...]:
    """Return the indexers of layers that use the positions of an earlier one: some files have them."""
    sharing = [layer for layer in range(num_layers) if layer not in indexing.layers]
    marks = [
        mark for layer in sharing for mark in (f"layers.{layer}.self_attn.indexer.", f"blk.{layer}.indexer.")
    ]
    why = "the layers use the positions that an earlier one chose"
    return (LeftOut("indexers", tuple(marks), why=why),) if marks else ()


def indexer_ops(indexing: Indexing, build: LayerBuilder, group: int, rope: RopeTable) -> Iterator[Op]:
    """Yield the ops that choose positions, from the input of the layer and the vector ``q_low``."""
    module, heads, dim = "self_attn.indexer", indexing.heads, indexing.head_dim
    outs = {"index_k": (f"{module}.wk", dim), "head_weights": (f"{module}.weights_proj", heads)}
    yield build.linear(build.input, outs, build.shape.hidden_size, bias=False)
    weight, bias = (TensorRef(build.name(f"{module}.k_norm.{kind}"), (dim,)) for kind in ("weight", "bias"))
    yield Norm("index_k", "index_k", weight, KEY_EPS, method="layer", bias=bias)
    yield build.linear("q_low", {"index_q": (f"{module}.wq_b", heads * dim)}, indexing.q_rank, bias=False)
    yield Rope("index_q", "index_q", heads, dim, rope, indexing.interleaved)
    yield Rope("index_k", "index_k", 1, dim, rope, indexing.interleaved)
    yield Indexer(
        "index_q", "index_k", "head_weights", CHOSEN, group, build.layer, heads, dim, indexing.top_k
    )
