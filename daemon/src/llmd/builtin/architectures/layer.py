"""The ops of a decoder layer: attention and a gated feed-forward network, both with residual connections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import msgspec

from llmd.api import (
    HIDDEN,
    Activate,
    Add,
    Attention,
    Gate,
    Glu,
    Linear,
    Norm,
    Op,
    Rope,
    RopeTable,
    TensorRef,
)
from llmd.api.activations import Activation
from llmd.builtin.architectures.shape import Shape
from llmd.builtin.architectures.streams import Streams, collapse_streams, mix_streams


class Modules(msgspec.Struct, frozen=True):
    """Names of the modules of a layer."""

    layers: str = "model.layers"
    """Above the numbers of layers."""
    attention: str = "self_attn"
    feed_forward: str = "mlp"
    gate_up: str = "gate_up_proj"
    """In the feed-forward network, if gate and up are one tensor."""
    down: str = "down_proj"


class LayerStyle(msgspec.Struct, frozen=True):
    """How the layers of a family differ from those of other families."""

    eps: float
    activation: Activation
    scale: float
    """Multiplies attention scores."""
    threshold: float = 0.0
    """Of the `Glu`."""
    limit: float | None = None
    """Of the `Glu`."""
    pre_norms: tuple[str, str] | None = ("input_layernorm", "post_attention_layernorm")
    """Names of the norms before the mixer and before the feed-forward network."""
    post_norms: tuple[str, str] | None = None
    """Names of the norms after the mixer and after the feed-forward network."""
    norm_offset: float = 0.0
    """Added to the weights of norms."""
    qk_norm: Literal["head", "width"] | None = None
    """Norm of queries and keys: per head, or over their whole width."""
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    fused_qkv: bool = False
    """The checkpoint has q, k and v in one tensor."""
    gate_up: Literal["apart", "fused", "up"] = "apart"
    """The feed-forward network has a gate and an up matrix in a tensor each, or both in one, or no gate."""
    softcap: float | None = None
    """Of attention scores."""
    sinks: bool = False
    """Attention has sinks."""
    out_gate: bool = False
    """Elements of attention's output are gated. The matrix of queries has the rows of queries and of gates of
    each head in turn."""
    rope_interleave: bool = False
    """RoPE rotates neighbouring elements of a head instead of elements half a head apart."""
    residual_scale: float = 1.0
    """Multiplies what a part adds to the residual stream."""
    streams: Streams | None = None
    """Residual connections have several streams; None: they have one."""
    modules: Modules = Modules()


def mixer_ops(
    shape: Shape, style: LayerStyle, layer: int, group: int, rope: RopeTable | None
) -> tuple[Op, ...]:
    """Return the ops of attention over the KV group ``group``; ``rope`` None: without positions."""
    build = LayerBuilder(shape, style, layer)
    dim = shape.head_dim
    attention = style.modules.attention
    sinks = TensorRef(build.name(f"{attention}.sinks"), (shape.heads,)) if style.sinks else None
    heads = (shape.heads, shape.kv_heads, dim)
    return (
        *build.pre_norm(0),
        build.qkv(),
        *build.qk_norms(),
        *(() if rope is None else build.ropes(rope)),
        Attention("q", "k", "v", "y", group, layer, *heads, style.scale, style.softcap, sinks),
        *((Gate("y", "gate", "y"),) if style.out_gate else ()),
        build.linear(
            "y", {"y": (f"{attention}.o_proj", shape.hidden_size)}, shape.q_width, bias=style.out_bias
        ),
        *build.post_norm(0),
        build.residual(),
    )


def feed_forward_ops(shape: Shape, style: LayerStyle, layer: int) -> tuple[Op, ...]:
    """``down(activation(gate(x)) * up(x))``, or without a gate ``down(activation(up(x)))``.

    Source: Shazeer 2020, "GLU Variants Improve Transformer".
    """
    build = LayerBuilder(shape, style, layer)
    inner, modules = shape.intermediate_size, style.modules
    down = f"{modules.feed_forward}.{modules.down}"
    return (
        *build.pre_norm(1),
        build.gate_up(),
        build.activation("y"),
        build.linear("y", {"y": (down, shape.hidden_size)}, inner, bias=style.mlp_bias),
        *build.post_norm(1),
        build.residual(),
    )


class LayerBuilder(msgspec.Struct, frozen=True):
    """Builds the ops of one layer; each part reads ``x`` (or the hidden state itself) and writes ``y``."""

    shape: Shape
    style: LayerStyle
    layer: int

    def pre_norm(self, part: int) -> Iterator[Op]:
        x, width, streams = HIDDEN, self.shape.hidden_size, self.style.streams
        if streams is not None:
            x = "x"
            yield from collapse_streams(streams, self.name(streams.modules[part]), width, x, only_read=False)
        if self.style.pre_norms is not None:
            yield self.norm(x, "x", self.style.pre_norms[part], width)

    def post_norm(self, part: int) -> Iterator[Op]:
        if self.style.post_norms is not None:
            yield self.norm("y", "y", self.style.post_norms[part], self.shape.hidden_size)

    def residual(self) -> Op:
        if self.style.streams is not None:
            return mix_streams(self.style.streams)
        return Add(HIDDEN, "y", HIDDEN, self.style.residual_scale)

    def qkv(self) -> Op:
        q, kv = self.shape.q_width, self.shape.kv_width
        widths = {"q": q, "k": kv, "v": kv}
        attention = self.style.modules.attention
        if self.style.fused_qkv:
            return self.fused(f"{attention}.qkv_proj", widths)
        outs = {out: (f"{attention}.{out}_proj", width) for out, width in widths.items()}
        plain = self.linear(self.input, outs, self.shape.hidden_size, bias=self.style.qkv_bias)
        return self._with_gates(plain) if self.style.out_gate else plain

    def _with_gates(self, qkv: Linear) -> Op:
        """Return the op with an output ``gate``, whose rows alternate with those of ``q``."""

        def half(ref: TensorRef | None, number: int) -> TensorRef | None:
            if ref is None:
                return None
            dim, shape = self.shape.head_dim, (2 * ref.shape[0], *ref.shape[1:])
            return TensorRef(ref.name, shape, rows=(number * dim, (number + 1) * dim), period=2 * dim)

        (weight, *weights), (bias, *biases) = qkv.weights, qkv.biases
        q, gate = (half(weight, number) for number in (0, 1))
        assert q is not None
        assert gate is not None
        return Linear(
            qkv.x,
            (*qkv.outs, "gate"),
            (q, *weights, gate),
            (half(bias, 0), *biases, half(bias, 1)),
        )

    def gate_up(self) -> Op:
        inner, modules = self.shape.intermediate_size, self.style.modules
        if self.style.gate_up == "fused":
            module = f"{modules.feed_forward}.{modules.gate_up}"
            return self.fused(module, {"gate": inner, "up": inner})
        names = ("up",) if self.style.gate_up == "up" else ("gate", "up")
        outs = {out: (f"{modules.feed_forward}.{out}_proj", inner) for out in names}
        return self.linear(self.input, outs, self.shape.hidden_size, bias=self.style.mlp_bias)

    def activation(self, out: str) -> Op:
        """Return the op between the matrices of a feed-forward network, which reads gate and up, or up."""
        if self.style.gate_up == "up":
            return Activate("up", out, self.style.activation)
        return Glu("gate", "up", out, self.style.activation, self.style.threshold, self.style.limit)

    def ropes(self, rope: RopeTable) -> Iterator[Op]:
        """Yield the ops that rotate queries and keys."""
        for value, heads in (("q", self.shape.heads), ("k", self.shape.kv_heads)):
            yield Rope(value, value, heads, self.shape.head_dim, rope, self.style.rope_interleave)

    def qk_norms(self) -> Iterator[Op]:
        """Yield the norms of queries and keys, with a weight per element of a head or of the whole width."""
        for value, heads in (("q", self.shape.heads), ("k", self.shape.kv_heads)):
            name = f"{self.style.modules.attention}.{value}_norm"
            if self.style.qk_norm == "head":
                yield self.norm(value, value, name, self.shape.head_dim, heads)
            elif self.style.qk_norm == "width":
                yield self.norm(value, value, name, heads * self.shape.head_dim)

    def linear(self, x: str, outs: dict[str, tuple[str, int]], width: int, *, bias: bool) -> Linear:
        """Return a linear op. ``outs`` maps each output to its module and width; ``width`` is that of x."""
        weights = [TensorRef(self.name(f"{module}.weight"), (out, width)) for module, out in outs.values()]
        biases = [
            TensorRef(self.name(f"{module}.bias"), (out,)) if bias else None for module, out in outs.values()
        ]
        return Linear(x, tuple(outs), tuple(weights), tuple(biases))

    @property
    def input(self) -> str:
        """The value that a part reads after its norm."""
        return HIDDEN if self.style.pre_norms is None else "x"

    def fused(self, module: str, widths: dict[str, int]) -> Op:
        """Return a linear op whose weights are consecutive rows of one tensor."""
        parts = self.parts(module, widths)
        return Linear(self.input, tuple(parts), tuple(parts.values()), (None,) * len(parts))

    def parts(self, module: str, widths: dict[str, int], runs: int = 1) -> dict[str, TensorRef]:
        """Return the parts of one tensor, which has ``widths`` rows of each, one after the other, in each of
        ``runs`` runs.
        """
        rows = sum(widths.values())
        shape, period = (runs * rows, self.shape.hidden_size), None if runs == 1 else rows
        ends = itertools.accumulate(widths.values())
        return {
            out: TensorRef(self.name(f"{module}.weight"), shape, (end - width, end), period)
            for (out, width), end in zip(widths.items(), ends, strict=True)
        }

    def norm(self, x: str, out: str, module: str, width: int, heads: int = 1) -> Norm:
        """Return the norm of a module over ``heads`` slices of ``width`` elements."""
        weight = TensorRef(self.name(f"{module}.weight"), (width,))
        return Norm(x, out, weight, self.style.eps, offset=self.style.norm_offset, heads=heads)

    def name(self, tensor: str) -> str:
        """Return the full name of a tensor of the layer."""
        return f"{self.style.modules.layers}.{self.layer}.{tensor}"
