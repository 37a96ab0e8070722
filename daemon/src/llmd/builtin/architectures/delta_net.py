"""The ops of a layer of linear attention with the gated delta rule."""

from __future__ import annotations

import msgspec

from llmd.api import Glu, Linear, Norm, Op, TensorRef
from llmd.api.state_ops import GatedDelta, Rates, StateSizes
from llmd.api.step_buffers import FLOAT_BYTES
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.shape import Shape

MAX_HEADS = 4096
MAX_TAPS = 64


class DeltaNet(msgspec.Struct, frozen=True):
    """How the layers of a family differ from those of other families. Widths are in elements."""

    heads: int
    """Heads of values, each with a state."""
    key_heads: int
    key_dim: int
    value_dim: int
    taps: int
    """Rows that a convolution sees."""
    fused_qkvz: bool = False
    """One matrix has the rows of q, k, v and z of each key head in turn; else one has those of q, then of k,
    then of v, and another those of z."""
    fused_ba: bool = False
    """One matrix has the rows of beta and decay of each key head in turn; else each has its own."""
    rates_as: Rates = "log"
    tiled: bool = False
    """See `GatedDelta`."""

    @property
    def key_width(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def value_width(self) -> int:
        return self.heads * self.value_dim

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of a sequence in a layer."""
        sizes = StateSizes(self.heads, self.key_heads, self.key_dim, self.value_dim, self.taps)
        return FLOAT_BYTES * sizes.elements


def read_delta_net(fields: ConfigFields, *, fused: bool) -> DeltaNet:
    """Read the sizes of Qwen's configurations; ``fused``: matrices are, unless the fields say otherwise.

    Raises:
        CheckpointError: a size is missing or invalid, or contradicts another.
    """
    heads = fields.size("linear_num_value_heads", 32, at_most=MAX_HEADS)
    key_heads = fields.size("linear_num_key_heads", 16, at_most=MAX_HEADS)
    if heads % key_heads:
        fields.contradict(f"linear_num_key_heads {key_heads} does not divide linear_num_value_heads {heads}")
    return DeltaNet(
        heads,
        key_heads,
        fields.size("linear_key_head_dim", 128, at_most=MAX_HEADS),
        fields.size("linear_value_head_dim", 128, at_most=MAX_HEADS),
        fields.size("linear_conv_kernel_dim", 4, at_most=MAX_TAPS),
        fields.flag("fused_qkvz", default=fused),
        fields.flag("fused_ba", default=fused),
        "negative" if fields.flag("negative_rates", default=False) else "log",
        fields.flag("tiled_heads", default=False),
    )


def delta_ops(net: DeltaNet, shape: Shape, style: LayerStyle, layer: int, group: int) -> tuple[Op, ...]:
    """Return the ops of the first part of a layer, whose states are in the KV group ``group``.

    Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule".
    """
    build = LayerBuilder(shape, style, layer)
    norm = TensorRef(build.name("linear_attn.norm.weight"), (net.value_dim,))
    return (
        *build.pre_norm(0),
        _projections(net, build),
        _delta(net, build, group),
        Norm("y", "y", norm, style.eps, heads=net.heads),
        Glu("z", "y", "y", "silu"),
        build.linear("y", {"y": ("linear_attn.out_proj", shape.hidden_size)}, net.value_width, bias=False),
        *build.post_norm(0),
        build.residual(),
    )


def _delta(net: DeltaNet, build: LayerBuilder, group: int) -> Op:
    keys, values = net.key_width, net.value_width
    shape = (2 * keys + values, 1, net.taps)

    def taps(first: int, width: int) -> TensorRef:
        return TensorRef(build.name("linear_attn.conv1d.weight"), shape, rows=(first, first + width))

    return GatedDelta(
        "q",
        "k",
        "v",
        "decay",
        "beta",
        "y",
        taps(0, keys),
        taps(keys, keys),
        taps(2 * keys, values),
        TensorRef(build.name("linear_attn.A_log"), (net.heads,)),
        TensorRef(build.name("linear_attn.dt_bias"), (net.heads,)),
        group,
        build.layer,
        net.heads,
        net.key_heads,
        net.key_dim,
        net.value_dim,
        net.rates_as,
        net.tiled,
    )


def _projections(net: DeltaNet, build: LayerBuilder) -> Op:
    qkvz = _fused_qkvz(net, build) if net.fused_qkvz else _qkvz(net, build)
    ba = _fused_ba(net, build) if net.fused_ba else _ba(net, build)
    parts = qkvz | ba
    return Linear(build.input, tuple(parts), tuple(parts.values()), (None,) * len(parts))


def _fused_qkvz(net: DeltaNet, build: LayerBuilder) -> dict[str, TensorRef]:
    values = net.heads // net.key_heads * net.value_dim
    widths = {"q": net.key_dim, "k": net.key_dim, "v": values, "z": values}
    return build.parts("linear_attn.in_proj_qkvz", widths, net.key_heads)


def _fused_ba(net: DeltaNet, build: LayerBuilder) -> dict[str, TensorRef]:
    widths = dict.fromkeys(("beta", "decay"), net.heads // net.key_heads)
    return build.parts("linear_attn.in_proj_ba", widths, net.key_heads)


def _qkvz(net: DeltaNet, build: LayerBuilder) -> dict[str, TensorRef]:
    widths = {"q": net.key_width, "k": net.key_width, "v": net.value_width}
    gate = TensorRef(build.name("linear_attn.in_proj_z.weight"), (net.value_width, build.shape.hidden_size))
    return {**build.parts("linear_attn.in_proj_qkv", widths), "z": gate}


def _ba(net: DeltaNet, build: LayerBuilder) -> dict[str, TensorRef]:
    shape = (net.heads, build.shape.hidden_size)
    return {
        "beta": TensorRef(build.name("linear_attn.in_proj_b.weight"), shape),
        "decay": TensorRef(build.name("linear_attn.in_proj_a.weight"), shape),
    }
