"""Build a `ModelPlan` from sizes and a layer style, for all decoder families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from llmd.api import HIDDEN, Embed, Head, KVGroup, ModelPlan, Norm, Op, Part, RopeTable, TensorRef
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.delta_net import DeltaNet, delta_ops
from llmd.builtin.architectures.kimi_delta import KimiDelta, kimi_delta_ops
from llmd.builtin.architectures.latent import LatentAttention, latent_groups, latent_ops
from llmd.builtin.architectures.layer import LayerStyle, feed_forward_ops, mixer_ops
from llmd.builtin.architectures.mamba import Mamba, mamba_ops
from llmd.builtin.architectures.mixture import Mixture, mixture_ops
from llmd.builtin.architectures.rope import read_rope, rope_table
from llmd.builtin.architectures.shape import Shape
from llmd.builtin.architectures.streams import Streams, collapse_streams, spread_streams
from llmd.builtin.architectures.windows import Windows

Half = Literal["both", "mixer", "feed_forward"]
"""What a layer has."""
KeepsState = DeltaNet | Mamba | KimiDelta
"""What a layer may have in place of attention."""
UNLIMITED = 1 << 20
"""The longest context of a model without positions that states none."""


class Ends(msgspec.Struct, frozen=True):
    """What a family does before the first layer and after the last."""

    tied: bool
    """The head uses the embedding's table."""
    embed_scale: float = 1.0
    head_scale: float = 1.0
    head_softcap: float | None = None
    embedding: str = "model.embed_tokens.weight"
    """Name of its table."""
    norm: str = "model.norm.weight"
    """Name of the weight of the norm before the head."""
    head: str = "lm_head.weight"
    """Name of the matrix of the head, if it is not the table."""
    streams: Streams | None = None
    """The hidden states have several streams; None: they have one."""


class Family(msgspec.Struct, frozen=True):
    """The part of a configuration that all families have."""

    architecture: str
    shape: Shape
    style: LayerStyle
    ends: Ends
    windows: Windows
    mixtures: tuple[Mixture | None, ...] = ()
    """The mixture of each layer, None for a feed-forward network; empty: no layer has one."""
    states: tuple[KeepsState | None, ...] = ()
    """What has a state in each layer, None for attention; empty: no layer has one."""
    halves: tuple[Half, ...] = ()
    """What each layer has; empty: all have both halves."""
    latent: LatentAttention | None = None
    """Layers of attention keep latent vectors; None: they keep keys and values."""

    def half(self, layer: int) -> Half:
        """Return what a layer has."""
        return self.halves[layer] if self.halves else "both"


def plan_with_one_rope(family: Family, fields: ConfigFields, context_len: int | None) -> ModelPlan:
    """Plan a model with the same RoPE in every layer. Raises what `llmd.api.Architecture` lists."""
    rope = read_rope(fields)
    context_len = context_len or rope.max_len
    table = rope_table(rope, family.shape.head_dim, context_len)
    return decoder_plan(family, (table,) * family.shape.num_layers, rope.max_context_len, context_len)


def plan_without_rope(family: Family, fields: ConfigFields, context_len: int | None) -> ModelPlan:
    """Plan a model whose attention, if any, has no positions."""
    longest = fields.size("max_position_embeddings", UNLIMITED)
    return decoder_plan(family, (None,) * family.shape.num_layers, longest, context_len or longest)


def decoder_plan(
    family: Family, ropes: Sequence[RopeTable | None], max_context_len: int, context_len: int
) -> ModelPlan:
    """Build a plan; ``ropes`` has a table for each layer, or None."""
    shape, style, ends = family.shape, family.style, family.ends
    groups = _groups(family)
    group_of = {layer: group.id for group in reversed(groups) for layer in group.layers}
    parts = [embed_part(shape, ends)]
    for layer, table in enumerate(ropes):
        if family.half(layer) != "feed_forward":
            mixer = _mixer(family, layer, group_of[layer], table)
            parts.append(Part(f"layer {layer} mixer", "mixer", layer, mixer))
        if family.half(layer) != "mixer":
            parts.append(Part(f"layer {layer} ffn", "ffn", layer, _feed_forward(family, layer)))
    parts.append(head_part(shape, style, ends))
    return ModelPlan(
        architecture=family.architecture,
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        context_len=context_len,
        max_context_len=max_context_len,
        groups=groups,
        parts=tuple(parts),
    )


def _mixer(family: Family, layer: int, group: int, rope: RopeTable | None) -> tuple[Op, ...]:
    match family.states[layer] if family.states else None:
        case None if family.latent is not None:
            return latent_ops(family.latent, family.shape, family.style, layer, group, rope)
        case None:
            return mixer_ops(family.shape, family.style, layer, group, rope)
        case DeltaNet() as net:
            return delta_ops(net, family.shape, family.style, layer, group)
        case Mamba() as mamba:
            return mamba_ops(mamba, family.shape, family.style, layer, group)
        case KimiDelta() as delta:
            return kimi_delta_ops(delta, family.shape, family.style, layer, group)


def _feed_forward(family: Family, layer: int) -> tuple[Op, ...]:
    mixture = family.mixtures[layer] if family.mixtures else None
    if mixture is None:
        return feed_forward_ops(family.shape, family.style, layer)
    return mixture_ops(mixture, family.shape, family.style, layer)


def _groups(family: Family) -> tuple[KVGroup, ...]:
    """Return the groups of each distinct window and each kind of state, in the order of their first layers.

    Of the groups of a layer, the first one has what attention reads.
    """
    states = family.states or (None,) * family.shape.num_layers
    kept = {
        layer: state or family.latent or window
        for layer, (state, window) in enumerate(zip(states, family.windows, strict=True))
        if family.half(layer) != "feed_forward"
    }
    groups: list[KVGroup] = []
    for what in dict.fromkeys(kept.values()):
        layers = tuple(layer for layer, other in kept.items() if other == what)
        groups += _groups_of(len(groups), what, layers, family.shape)
    return tuple(groups)


def _groups_of(
    index: int, what: KeepsState | LatentAttention | int | None, layers: tuple[int, ...], shape: Shape
) -> Iterator[KVGroup]:
    if isinstance(what, KeepsState):
        yield KVGroup(index, None, 0, 0, layers, kind="state", state_bytes=what.state_bytes)
    elif isinstance(what, LatentAttention):
        yield from latent_groups(what, shape, index, layers)
    else:
        yield KVGroup(index, what, shape.kv_heads, shape.head_dim, layers)


def embedding(shape: Shape, ends: Ends) -> TensorRef:
    """Return the table of the embedding."""
    return TensorRef(ends.embedding, (shape.vocab_size, shape.hidden_size))


def embed_part(shape: Shape, ends: Ends) -> Part:
    """Return the first part."""
    op = Embed(HIDDEN, embedding(shape, ends), ends.embed_scale)
    return Part("embedding", "embed", None, (op, *(spread_streams(ends.streams) if ends.streams else ())))


def head_part(shape: Shape, style: LayerStyle, ends: Ends) -> Part:
    """Return the last part: the final norm and the head."""
    weight, streams = TensorRef(ends.norm, (shape.hidden_size,)), ends.streams
    x = HIDDEN if streams is None else "x"
    norm = Norm(x, "x", weight, style.eps, offset=style.norm_offset)
    table = embedding(shape, ends)
    matrix = table if ends.tied else TensorRef(ends.head, table.shape)
    head = Head("x", matrix, ends.head_scale, ends.head_softcap)
    collapse = (
        ()
        if streams is None
        else collapse_streams(streams, streams.head, shape.hidden_size, "x", only_read=True)
    )
    return Part("head", "head", None, (*collapse, norm, head))
