"""The ops of a layer of Falcon-H1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from llmd.api import HIDDEN, Add, Attention, Glu, Op, RopeTable
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.mamba import Mamba, norm_of_groups, projections, state_space
from llmd.builtin.architectures.shape import Shape


class Multipliers(msgspec.Struct, frozen=True):
    """What multiplies values. Multipliers that configurations state of inputs are part of those of outputs,
    which are linear in them.
    """

    scores: float
    """Multiplies attention scores."""
    attended: float
    """Multiplies what attention adds to the residual stream."""
    projections: Mapping[str, float]
    """Multiplies each value of `Mamba.widths`."""
    state: float
    """Multiplies what the state space adds to the residual stream."""
    gate: float
    """Multiplies gates of the feed-forward network."""
    down: float
    """Multiplies what the feed-forward network adds to the residual stream."""


class ParallelLayer(msgspec.Struct, frozen=True):
    """What all layers have in common."""

    shape: Shape
    style: LayerStyle
    mamba: Mamba
    has_norm: bool
    """What the state space writes is normalised after its gate."""
    multipliers: Multipliers


def mixer_ops(
    layer: ParallelLayer, number: int, rope: RopeTable, *, attention_group: int, state_group: int
) -> tuple[Op, ...]:
    """Return the ops of attention and the state space, which read the same norm and add to the stream."""
    build = LayerBuilder(layer.shape, layer.style, number)
    return (
        *build.pre_norm(0),
        *_attention(layer, build, rope, attention_group),
        *_space(layer, build, state_group),
        Add(HIDDEN, "attended", HIDDEN, layer.multipliers.attended),
        Add(HIDDEN, "y", HIDDEN, layer.multipliers.state),
    )


def _attention(layer: ParallelLayer, build: LayerBuilder, rope: RopeTable, group: int) -> Iterator[Op]:
    shape = layer.shape
    heads = (shape.heads, shape.kv_heads, shape.head_dim)
    yield build.qkv()
    yield from build.ropes(rope)
    yield Attention("q", "k", "v", "attended", group, build.layer, *heads, layer.style.scale)
    outs = {"attended": ("self_attn.o_proj", shape.hidden_size)}
    yield build.linear("attended", outs, shape.q_width, bias=False)


def _space(layer: ParallelLayer, build: LayerBuilder, group: int) -> Iterator[Op]:
    mamba = layer.mamba
    yield projections(mamba, build)
    for value, factor in layer.multipliers.projections.items():
        yield from _multiplied(value, factor)
    yield state_space(mamba, build, group)
    yield Glu("z", "y", "y", "silu")
    if layer.has_norm:
        yield norm_of_groups(mamba, build)
    outs = {"y": (f"{mamba.module}.out_proj", layer.shape.hidden_size)}
    yield build.linear("y", outs, mamba.inner, bias=False)


def feed_forward_ops(layer: ParallelLayer, number: int) -> tuple[Op, ...]:
    """Return the ops of the feed-forward network."""
    build = LayerBuilder(layer.shape, layer.style, number)
    outs = {"y": ("feed_forward.down_proj", layer.shape.hidden_size)}
    return (
        *build.pre_norm(1),
        build.gate_up(),
        *_multiplied("gate", layer.multipliers.gate),
        build.activation("y"),
        build.linear("y", outs, layer.shape.intermediate_size, bias=False),
        build.residual(),
    )


def _multiplied(value: str, factor: float) -> Iterator[Op]:
    """Yield what multiplies a value; nothing for 1, as in files that have multipliers in their weights.

    The sum loses ``1 / factor`` ulps, far fewer than weights of 16 bits.
    """
    if factor != 1.0:
        yield Add(value, value, value, factor - 1.0)
