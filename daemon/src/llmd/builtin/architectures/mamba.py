"""The ops of a layer with the state space of Mamba-2."""

from __future__ import annotations

import itertools

import msgspec

from llmd.api import Glu, Linear, Norm, Op, TensorRef
from llmd.api.state_ops import Rates, StateSizes, StateSpace
from llmd.api.step_buffers import FLOAT_BYTES
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.shape import Shape
from llmd.models.space_names import SpaceNames

MAX_SIZE = 4096
"""Of heads, groups, elements of a head and of its state."""
MAX_TAPS = 64


class Mamba(msgspec.Struct, frozen=True):
    """How the layers of a family differ from those of other families. Widths are in elements."""

    module: str
    """Name of the module in a layer."""
    heads: int
    groups: int
    """Groups of heads, each with what is read of the states and what is written."""
    head_dim: int
    state_size: int
    taps: int
    """Rows that the convolution sees."""
    has_filter_bias: bool = True
    """The convolution has biases."""
    has_bias: bool = False
    """The matrices before and behind the state space have biases."""
    least_time: float = 0.0
    most_time: float | None = None
    rates_as: Rates = "log"
    """See `StateSpace`."""

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def group_width(self) -> int:
        return self.groups * self.state_size

    @property
    def widths(self) -> dict[str, int]:
        """Rows of the first matrix for each value that it makes, in their order."""
        group = self.group_width
        return {"z": self.inner, "x": self.inner, "b": group, "c": group, "time": self.heads}

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of a sequence in a layer."""
        sizes = StateSizes(self.heads, self.groups, self.state_size, self.head_dim, self.taps)
        return FLOAT_BYTES * sizes.elements


def read_mamba(fields: ConfigFields, names: SpaceNames, module: str, *, inner: int | None = None) -> Mamba:
    """Read the sizes; ``inner`` is the width that heads must add up to, and that tells a missing head_dim.

    Raises:
        CheckpointError: a size is missing or invalid, or contradicts another.
    """
    heads = fields.size(names.heads, at_most=MAX_SIZE)
    groups = fields.size(names.groups, 1, at_most=MAX_SIZE)
    if heads % groups:
        fields.contradict(f"{names.groups} {groups} does not divide {names.heads} {heads}")
    head_dim = _head_dim(fields, names.head_dim, heads, inner)
    if inner is not None and heads * head_dim != inner:
        fields.contradict(
            f"{heads} heads of {head_dim} elements do not add up to {inner}, the width of layers"
        )
    least, most = fields.bounds("time_step_limit")
    return Mamba(
        module,
        heads,
        groups,
        head_dim,
        fields.size(names.state_size, at_most=MAX_SIZE),
        fields.size(names.taps, 4, at_most=MAX_TAPS),
        fields.flag(names.has_filter_bias, default=True),
        fields.flag(names.has_bias, default=False),
        least,
        most,
        "negative" if fields.flag("negative_rates", default=False) else "log",
    )


def _head_dim(fields: ConfigFields, name: str, heads: int, inner: int | None) -> int:
    if inner is not None and (name not in fields or fields.is_text(name, "auto")):
        return max(1, inner // heads)
    return fields.size(name, at_most=MAX_SIZE)


def mamba_ops(mamba: Mamba, shape: Shape, style: LayerStyle, layer: int, group: int) -> tuple[Op, ...]:
    """Return the ops of the first part of a layer, whose states are in the KV group ``group``.

    Source: Dao & Gu 2024, "Transformers are SSMs" (Mamba-2).
    """
    build = LayerBuilder(shape, style, layer)
    outs = {"y": (f"{mamba.module}.out_proj", shape.hidden_size)}
    return (
        *build.pre_norm(0),
        projections(mamba, build),
        state_space(mamba, build, group),
        Glu("z", "y", "y", "silu"),
        norm_of_groups(mamba, build),
        build.linear("y", outs, mamba.inner, bias=mamba.has_bias),
        *build.post_norm(0),
        build.residual(),
    )


def norm_of_groups(mamba: Mamba, build: LayerBuilder) -> Norm:
    """Return the norm of ``y`` before the last matrix."""
    weight = TensorRef(build.name(f"{mamba.module}.norm.weight"), (mamba.inner,))
    return Norm("y", "y", weight, build.style.eps, heads=mamba.groups, own_weights=mamba.groups > 1)


def projections(mamba: Mamba, build: LayerBuilder) -> Linear:
    """Return the first matrix, which makes the values that `Mamba.widths` names."""
    weights = build.parts(f"{mamba.module}.in_proj", mamba.widths)
    total = sum(mamba.widths.values())
    biases = (
        TensorRef(build.name(f"{mamba.module}.in_proj.bias"), (total,), rows=ref.rows)
        if mamba.has_bias
        else None
        for ref in weights.values()
    )
    return Linear(build.input, tuple(weights), tuple(weights.values()), tuple(biases))


def state_space(mamba: Mamba, build: LayerBuilder, group: int) -> StateSpace:
    """Return the op that makes ``y`` of these values, except ``z``."""
    values = ("x", "b", "c")
    ends = itertools.accumulate(mamba.widths[value] for value in values)
    ranges = {value: (end - mamba.widths[value], end) for value, end in zip(values, ends, strict=True)}
    total = mamba.inner + 2 * mamba.group_width

    def tensor(name: str, shape: tuple[int, ...], value: str | None = None) -> TensorRef:
        full = build.name(f"{mamba.module}.{name}")
        return TensorRef(full, shape, rows=None if value is None else ranges[value])

    def taps(value: str) -> TensorRef:
        return tensor("conv1d.weight", (total, 1, mamba.taps), value)

    def bias(value: str) -> TensorRef | None:
        return tensor("conv1d.bias", (total,), value) if mamba.has_filter_bias else None

    return StateSpace(
        "c",
        "b",
        "x",
        "time",
        "y",
        taps("c"),
        taps("b"),
        taps("x"),
        rates=tensor("A_log", (mamba.heads,)),
        bias=tensor("dt_bias", (mamba.heads,)),
        skips=tensor("D", (mamba.heads,)),
        group=group,
        layer=build.layer,
        heads=mamba.heads,
        groups=mamba.groups,
        state_size=mamba.state_size,
        head_dim=mamba.head_dim,
        rates_as=mamba.rates_as,
        least_time=mamba.least_time,
        most_time=mamba.most_time,
        c_bias=bias("c"),
        b_bias=bias("b"),
        x_bias=bias("x"),
    )
