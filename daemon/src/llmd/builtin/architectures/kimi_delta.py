"""The ops of a layer of Kimi Delta Attention: the gated delta rule with a decay for each element of a key."""

from __future__ import annotations

import msgspec

from llmd.api import Gate, GatedDelta, Linear, Norm, Op, TensorRef
from llmd.api.state_ops import Rates, StateSizes
from llmd.api.step_buffers import FLOAT_BYTES
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.delta_net import MAX_HEADS, MAX_TAPS
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.shape import Shape

INPUTS = ("q", "k", "v")


class KimiDelta(msgspec.Struct, frozen=True):
    """The sizes of such layers."""

    heads: int
    head_dim: int
    """Elements of a query, a key and a value, and of the vectors from which decays and gates are made."""
    taps: int
    """Rows that a convolution sees."""
    rates_as: Rates = "log"
    """See `GatedDelta`."""

    @property
    def width(self) -> int:
        return self.heads * self.head_dim

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of a sequence in a layer."""
        sizes = StateSizes(self.heads, self.heads, self.head_dim, self.head_dim, self.taps)
        return FLOAT_BYTES * sizes.elements


def read_kimi_delta(fields: ConfigFields) -> KimiDelta:
    """Read the sizes.

    Raises:
        CheckpointError: a size is missing or invalid.
    """
    linear = fields.inside("linear_attn_config")
    return KimiDelta(
        linear.size("num_heads", at_most=MAX_HEADS),
        linear.size("head_dim", at_most=MAX_HEADS),
        linear.size("short_conv_kernel_size", 4, at_most=MAX_TAPS),
        "negative" if fields.flag("negative_rates", default=False) else "log",
    )


def kimi_delta_ops(
    delta: KimiDelta, shape: Shape, style: LayerStyle, layer: int, group: int
) -> tuple[Op, ...]:
    """Return the ops of the first part of a layer, whose states are in the KV group ``group``.

    Source: Kimi Team 2025, "Kimi Linear: An Expressive, Efficient Attention Architecture".
    """
    build = LayerBuilder(shape, style, layer)
    width, dim = delta.width, delta.head_dim
    norm = TensorRef(build.name("self_attn.o_norm.weight"), (dim,))
    return (
        *build.pre_norm(0),
        _projections(delta, build),
        build.linear("decay_low", {"decay": ("self_attn.f_b_proj", width)}, dim, bias=False),
        build.linear("gate_low", {"gate": ("self_attn.g_b_proj", width)}, dim, bias=False),
        _delta(delta, build, group),
        Norm("y", "y", norm, style.eps, heads=delta.heads),
        Gate("y", "gate", "y"),
        build.linear("y", {"y": ("self_attn.o_proj", shape.hidden_size)}, width, bias=False),
        *build.post_norm(0),
        build.residual(),
    )


def _projections(delta: KimiDelta, build: LayerBuilder) -> Linear:
    modules = {
        **{value: (f"self_attn.{value}_proj", delta.width) for value in INPUTS},
        "beta": ("self_attn.b_proj", delta.heads),
        "decay_low": ("self_attn.f_a_proj", delta.head_dim),
        "gate_low": ("self_attn.g_a_proj", delta.head_dim),
    }
    return build.linear(build.input, modules, build.shape.hidden_size, bias=False)


def _delta(delta: KimiDelta, build: LayerBuilder, group: int) -> Op:
    q_taps, k_taps, v_taps = (
        TensorRef(build.name(f"self_attn.{value}_conv1d.weight"), (delta.width, 1, delta.taps))
        for value in INPUTS
    )
    return GatedDelta(
        "q",
        "k",
        "v",
        "decay",
        "beta",
        "y",
        q_taps,
        k_taps,
        v_taps,
        rates=TensorRef(build.name("self_attn.A_log"), (delta.heads,)),
        bias=TensorRef(build.name("self_attn.dt_bias"), (delta.width,)),
        group=group,
        layer=build.layer,
        heads=delta.heads,
        key_heads=delta.heads,
        key_dim=delta.head_dim,
        value_dim=delta.head_dim,
        rates_as=delta.rates_as,
    )
