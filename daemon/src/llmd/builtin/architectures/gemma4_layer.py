"""The ops of a layer of Gemma 4."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, Add, Attention, Glu, Multiply, Norm, Op, Rope, RopeTable, TensorRef
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.mixture import ExpertNames, Mixture, experts_op, router_op
from llmd.builtin.architectures.per_layer_input import PerLayerInput, per_layer_ops
from llmd.builtin.architectures.shape import Shape

GATE_UP = "experts.gate_up_proj"
EXPERTS = ExpertNames(
    router="router.proj.weight",
    gate="experts.*.gate_proj.weight",
    up="experts.*.up_proj.weight",
    down="experts.*.down_proj.weight",
    gains="router.per_expert_scale",
)
FUSED_EXPERTS = msgspec.structs.replace(EXPERTS, gate=GATE_UP, up=GATE_UP, down="experts.down_proj")
"""One tensor has the rows of the gates and up matrices of all experts."""


class Layer(msgspec.Struct, frozen=True):
    """How a layer differs from others of the same model."""

    number: int
    shape: Shape
    window: int | None
    rope: RopeTable
    keys_of: int
    """Number of the layer whose keys and values it reads: its own, or that of an earlier one."""
    value_is_key: bool
    """Values are what the matrix of keys makes, before the norm and RoPE of keys."""

    @property
    def shares(self) -> bool:
        """Whether it reads the keys of another layer."""
        return self.keys_of != self.number


def attention_ops(layer: Layer, style: LayerStyle, group: int) -> tuple[Op, ...]:
    """Return the ops of the first part, whose keys and values are in the KV group ``group``."""
    build, shape = LayerBuilder(layer.shape, style, layer.number), layer.shape
    k, v = (None, None) if layer.shares else ("k", "v")
    sizes = (shape.heads, shape.kv_heads, shape.head_dim)
    return (
        *build.pre_norm(0),
        _projections(layer, build),
        *_normed(layer, build),
        Attention("q", k, v, "y", group, layer.keys_of, *sizes, style.scale),
        build.linear("y", {"y": ("self_attn.o_proj", shape.hidden_size)}, shape.q_width, bias=style.out_bias),
        *build.post_norm(0),
        build.residual(),
    )


def _projections(layer: Layer, build: LayerBuilder) -> Op:
    q, kv = layer.shape.q_width, layer.shape.kv_width
    own = () if layer.shares else ("k",) if layer.value_is_key else ("k", "v")
    outs = {"q": ("self_attn.q_proj", q), **{out: (f"self_attn.{out}_proj", kv) for out in own}}
    return build.linear(build.input, outs, layer.shape.hidden_size, bias=build.style.qkv_bias)


def _normed(layer: Layer, build: LayerBuilder) -> Iterator[Op]:
    """Yield the norms of queries, keys and values, the last without a weight, and RoPE."""
    shape, dim = layer.shape, layer.shape.head_dim
    if not layer.shares:
        values = "k" if layer.value_is_key else "v"
        yield Norm(values, "v", None, build.style.eps, heads=shape.kv_heads)
    turned = (("q", shape.heads), ("k", shape.kv_heads))[: 1 if layer.shares else 2]
    for value, heads in turned:
        yield build.norm(value, value, f"self_attn.{value}_norm", dim, heads)
    for value, heads in turned:
        yield Rope(value, value, heads, dim, layer.rope)


def feed_forward_ops(
    layer: Layer, style: LayerStyle, mixture: Mixture | None, inputs: PerLayerInput | None
) -> tuple[Op, ...]:
    """Return the ops of the second part: a feed-forward network, experts beside it, inputs of the layer, and
    a factor for all that leaves the layer.
    """
    build, shape = LayerBuilder(layer.shape, style, layer.number), layer.shape
    return (
        *build.pre_norm(1),
        build.gate_up(),
        Glu("gate", "up", "y", style.activation),
        build.linear("y", {"y": ("mlp.down_proj", shape.hidden_size)}, shape.intermediate_size, bias=False),
        *(() if mixture is None else _experts(mixture, build)),
        *build.post_norm(1),
        build.residual(),
        *(() if inputs is None else per_layer_ops(inputs, build)),
        Multiply(HIDDEN, HIDDEN, TensorRef(build.name("layer_scalar"), (1,))),
    )


def _experts(mixture: Mixture, build: LayerBuilder) -> Iterator[Op]:
    """Yield the ops that add the output of experts to ``y``; they read the hidden states with other norms."""
    hidden = build.shape.hidden_size
    yield build.norm("y", "y", "post_feedforward_layernorm_1", hidden)
    yield Norm(HIDDEN, "routed", TensorRef(build.name("router.scale"), (hidden,)), build.style.eps)
    yield router_op(mixture, build, "routed")
    yield build.norm(HIDDEN, build.input, "pre_feedforward_layernorm_2", hidden)
    yield experts_op(mixture, build, build.input, "mixed", hidden)
    yield build.norm("mixed", "mixed", "post_feedforward_layernorm_2", hidden)
    yield Add("y", "mixed", "y")
