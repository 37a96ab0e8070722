"""The ops of a decoder layer: attention and a gated feed-forward network, both with residual connections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import msgspec

from llmd.api import HIDDEN, Add, Attention, Gate, Glu, Linear, Norm, Op, Rope, RopeTable, TensorRef
from llmd.api.activations import Activation
from llmd.builtin.architectures.shape import Shape


class LayerStyle(msgspec.Struct, frozen=True):
    """How the layers of a family differ from those of other families."""

    eps: float
    activation: Activation
    scale: float
    """Multiplies attention scores."""
    threshold: float = 0.0
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
    fused: bool = False
    """The checkpoint has q, k and v in one tensor, and gate and up in another."""
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


def mixer_ops(shape: Shape, style: LayerStyle, layer: int, group: int, rope: RopeTable) -> tuple[Op, ...]:
    """Return the ops of attention over the KV group ``group`` with RoPE ``rope``."""
    build = LayerBuilder(shape, style, layer)
    dim = shape.head_dim
    sinks = TensorRef(build.name("self_attn.sinks"), (shape.heads,)) if style.sinks else None
    heads = (shape.heads, shape.kv_heads, dim)
    return (
        *build.pre_norm(0),
        build.qkv(),
        *build.qk_norms(),
        Rope("q", "q", shape.heads, dim, rope, style.rope_interleave),
        Rope("k", "k", shape.kv_heads, dim, rope, style.rope_interleave),
        Attention("q", "k", "v", "y", group, layer, *heads, style.scale, style.softcap, sinks),
        *((Gate("y", "gate", "y"),) if style.out_gate else ()),
        build.linear("y", {"y": ("self_attn.o_proj", shape.hidden_size)}, shape.q_width, bias=style.out_bias),
        *build.post_norm(0),
        build.residual(),
    )


def feed_forward_ops(shape: Shape, style: LayerStyle, layer: int) -> tuple[Op, ...]:
    """``down(activation(gate(x)) * up(x))``. Source: Shazeer 2020, "GLU Variants Improve Transformer"."""
    build = LayerBuilder(shape, style, layer)
    inner = shape.intermediate_size
    return (
        *build.pre_norm(1),
        build.gate_up(),
        Glu("gate", "up", "y", style.activation, style.threshold),
        build.linear("y", {"y": ("mlp.down_proj", shape.hidden_size)}, inner, bias=style.mlp_bias),
        *build.post_norm(1),
        build.residual(),
    )


class LayerBuilder(msgspec.Struct, frozen=True):
    """Builds the ops of one layer; each part reads ``x`` (or the hidden state itself) and writes ``y``."""

    shape: Shape
    style: LayerStyle
    layer: int

    def pre_norm(self, part: int) -> Iterator[Op]:
        if self.style.pre_norms is not None:
            yield self._norm(HIDDEN, "x", self.style.pre_norms[part], self.shape.hidden_size)

    def post_norm(self, part: int) -> Iterator[Op]:
        if self.style.post_norms is not None:
            yield self._norm("y", "y", self.style.post_norms[part], self.shape.hidden_size)

    def residual(self) -> Op:
        return Add(HIDDEN, "y", HIDDEN, self.style.residual_scale)

    def qkv(self) -> Op:
        q, kv = self.shape.q_width, self.shape.kv_width
        widths = {"q": q, "k": kv, "v": kv}
        if self.style.fused:
            return self.fused("self_attn.qkv_proj", widths)
        outs = {out: (f"self_attn.{out}_proj", width) for out, width in widths.items()}
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
        inner = self.shape.intermediate_size
        if self.style.fused:
            return self.fused("mlp.gate_up_proj", {"gate": inner, "up": inner})
        outs = {out: (f"mlp.{out}_proj", inner) for out in ("gate", "up")}
        return self.linear(self.input, outs, self.shape.hidden_size, bias=self.style.mlp_bias)

    def qk_norms(self) -> Iterator[Op]:
        """Yield the norms of queries and keys, with a weight per element of a head or of the whole width."""
        for value, heads in (("q", self.shape.heads), ("k", self.shape.kv_heads)):
            name = f"self_attn.{value}_norm"
            if self.style.qk_norm == "head":
                yield self._norm(value, value, name, self.shape.head_dim, heads)
            elif self.style.qk_norm == "width":
                yield self._norm(value, value, name, heads * self.shape.head_dim)

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

    def _norm(self, x: str, out: str, module: str, width: int, heads: int = 1) -> Op:
        weight = TensorRef(self.name(f"{module}.weight"), (width,))
        return Norm(x, out, weight, self.style.eps, offset=self.style.norm_offset, heads=heads)

    def name(self, tensor: str) -> str:
        """Return the full name of a tensor of the layer."""
        return f"model.layers.{self.layer}.{tensor}"
