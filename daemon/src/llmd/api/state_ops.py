"""The ops that keep a state of fixed size for each sequence, in a KV group of kind ``state``."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef

Rates = Literal["log", "negative"]
"""How a checkpoint stores the rates r of decays: as ``ln r``, or as ``-r``."""

DELTA_EPS = 1e-6
"""Added to the sums of squares that divide keys and queries of `GatedDelta`."""


class StateSizes(msgspec.Struct, frozen=True):
    """What decides how much a layer keeps of a sequence: rows that convolutions still need, and a matrix
    ``[key_dim, value_dim]`` for each head.
    """

    heads: int
    """Number of heads, each with a matrix."""
    key_heads: int
    """Number of heads of queries and keys, which divides ``heads``."""
    key_dim: int
    value_dim: int
    taps: int
    """Rows that a convolution sees."""

    @property
    def width(self) -> int:
        """Elements of the queries, keys and values of a row."""
        return 2 * self.key_heads * self.key_dim + self.heads * self.value_dim

    @property
    def elements(self) -> int:
        """Float32 elements that are kept."""
        return (self.taps - 1) * self.width + self.heads * self.key_dim * self.value_dim


class GatedDelta(BaseOp, frozen=True, tag="gated_delta"):
    """Linear attention with the gated delta rule, after a short convolution of queries, keys and values.

    For each row: every element of ``q``, ``k`` and ``v`` is replaced by ``silu(sum of taps)``, a weighted sum
    of that element in this and the rows before it. Queries and keys of a head are divided by
    ``sqrt(sum of squares + 1e-6)``, queries also by ``sqrt(key_dim)``. Then, with the state S
    ``[key_dim, value_dim]`` of a head, ``S = diag(exp(-rate * softplus(decay + bias))) S``,
    ``S = S + outer(k, sigmoid(beta) * (v - k S))``, and ``out = q S``.

    A row has the same results whatever rows share its step: the state is that after the row before it.

    Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule"; Kimi Team 2025, "Kimi
    Linear: An Expressive, Efficient Attention Architecture" (a decay for each element of a key).
    """

    kind: ClassVar[str] = "gated_delta"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "v", "decay", "beta")
    tensor_fields: ClassVar[tuple[str, ...]] = ("q_taps", "k_taps", "v_taps", "rates", "bias")
    q: str
    """``[rows, key_heads * key_dim]``."""
    k: str
    """As wide as ``q``."""
    v: str
    """``[rows, heads * value_dim]``."""
    decay: str
    """``[rows, heads]``, or ``[rows, heads * key_dim]``: a decay for each element of a key."""
    beta: str
    """``[rows, heads]``: how much of a value is written."""
    out: str
    """As wide as ``v``."""
    q_taps: TensorRef
    """``[width of q, 1, taps]``, the last tap for the row itself."""
    k_taps: TensorRef
    v_taps: TensorRef
    rates: TensorRef
    """``[heads]``."""
    bias: TensorRef
    """``[width of decay]``."""
    group: int
    """`KVGroup.id` of the ``state`` group that the layer belongs to."""
    layer: int
    """Number of the layer in the model."""
    heads: int
    """Number of heads, each with a state."""
    key_heads: int
    """Number of heads of queries and keys, which divides ``heads``."""
    key_dim: int
    value_dim: int
    rates_as: Rates = "log"
    tiled: bool = False
    """Head h uses key head ``h % key_heads``; else ``h // (heads / key_heads)``."""

    @property
    def decays_elements(self) -> bool:
        """Whether each element of a key has a decay."""
        return self.bias.shape[-1] != self.heads

    @property
    def taps(self) -> int:
        """Rows that a convolution sees."""
        return self.q_taps.shape[-1]

    @property
    def sizes(self) -> StateSizes:
        """The sizes that decide how much is kept."""
        return StateSizes(self.heads, self.key_heads, self.key_dim, self.value_dim, self.taps)

    @property
    def row_elements(self) -> int:
        """Elements that a row is turned into before it changes the state: queries, keys, values, decays and
        shares.
        """
        return self.sizes.width + self.bias.shape[-1] + self.heads

    @property
    def state_elements(self) -> int:
        """Float32 elements of the state: rows that convolutions still need, then a matrix for each head."""
        return self.sizes.elements


class StateSpace(BaseOp, frozen=True, tag="state_space"):
    """The selective state space of Mamba-2, after a short convolution of its rows.

    For each row: every element of ``c``, ``b`` and ``x`` is replaced by ``silu(sum of taps + bias)``, a
    weighted sum of that element in this and the rows before it. Then, with the state S
    ``[state_size, head_dim]`` of a head and ``t = softplus(time + bias)``, at least ``least_time`` and at
    most ``most_time``, ``S = exp(-rate * t) S + outer(b, t * x)``, and ``out = c S + skip * x``.

    A row has the same results whatever rows share its step: the state is that after the row before it.

    Source: Dao & Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through
    Structured State Space Duality".
    """

    kind: ClassVar[str] = "state_space"
    read_fields: ClassVar[tuple[str, ...]] = ("c", "b", "x", "time")
    tensor_fields: ClassVar[tuple[str, ...]] = (
        "c_taps", "b_taps", "x_taps", "rates", "bias", "skips", "c_bias", "b_bias", "x_bias"
    )  # fmt: skip
    c: str
    """``[rows, groups * state_size]``: what a row reads of the state."""
    b: str
    """As wide as ``c``: where a row writes to the state."""
    x: str
    """``[rows, heads * head_dim]``."""
    time: str
    """``[rows, heads]``: how much a row writes, and how much it makes the state decay."""
    out: str
    """As wide as ``x``."""
    c_taps: TensorRef
    """``[width of c, 1, taps]``, the last tap for the row itself."""
    b_taps: TensorRef
    x_taps: TensorRef
    rates: TensorRef
    """``[heads]``."""
    bias: TensorRef
    """``[heads]``, added to ``time``."""
    skips: TensorRef
    """``[heads]``: multiplies what is added of ``x`` itself."""
    group: int
    """`KVGroup.id` of the ``state`` group that the layer belongs to."""
    layer: int
    """Number of the layer in the model."""
    heads: int
    """Number of heads, each with a state."""
    groups: int
    """Head h uses ``b`` and ``c`` of group ``h // (heads / groups)``."""
    state_size: int
    head_dim: int
    rates_as: Rates = "log"
    least_time: float = 0.0
    most_time: float | None = None
    """None: no bound."""
    c_bias: TensorRef | None = None
    """``[width of c]``, added to the convolution; with it, the other two exist as well."""
    b_bias: TensorRef | None = None
    x_bias: TensorRef | None = None

    @property
    def taps(self) -> int:
        """Rows that a convolution sees."""
        return self.c_taps.shape[-1]

    @property
    def sizes(self) -> StateSizes:
        """The sizes that decide how much is kept: ``c`` are queries, ``b`` keys, ``x`` values."""
        return StateSizes(self.heads, self.groups, self.state_size, self.head_dim, self.taps)

    @property
    def row_elements(self) -> int:
        """Elements that a row is turned into before it changes the state: ``c``, ``b``, ``x``, decays and
        times.
        """
        return self.sizes.width + 2 * self.heads

    @property
    def state_elements(self) -> int:
        """Float32 elements of the state: rows that convolutions still need, then a matrix for each head."""
        return self.sizes.elements
