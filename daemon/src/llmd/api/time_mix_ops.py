"""The ops of RWKV-7, which keep what they need of a sequence in a KV group of kind ``state``.

All that a layer keeps is one state: each op has a range of it, which begins at ``offset``.

Source: Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic State Evolution".
"""

from __future__ import annotations

from typing import ClassVar

from llmd.api.base_op import BaseOp
from llmd.api.state_ops import StateSizes
from llmd.api.tensors import TensorRef

WKV_DECAY = -0.6065306597126334
"""``-exp(-1/2)``: the logarithm of the strongest decay of `GeneralizedDelta`."""
WKV_EPS = 1e-12
"""The least length by which `GeneralizedDelta` divides."""


class TokenShift(BaseOp, frozen=True, tag="token_shift"):
    """``outs[i] = x[r] + (x[r - 1] - x[r]) * shares[i]``: mix each row with the row before it.

    The row before position 0 is zero. What is kept is the last row, float32.
    """

    kind: ClassVar[str] = "token_shift"
    x: str
    outs: tuple[str, ...]
    shares: tuple[TensorRef, ...]
    """As long as a row, one for each output."""
    group: int
    """`KVGroup.id` of the ``state`` group that the layer belongs to."""
    layer: int
    """Number of the layer in the model."""
    offset: int = 0
    """Float32 elements of the state of a layer before those of the op."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values that the op writes."""
        return self.outs

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """The shares."""
        return self.shares

    @property
    def state_elements(self) -> int:
        """Float32 elements of the state: a row."""
        return self.shares[0].view_shape[0]


class GeneralizedDelta(BaseOp, frozen=True, tag="generalized_delta"):
    """Linear attention with the generalised delta rule: what a row takes out of the state is not what it puts
    there.

    For each row and head, with ``rate = sigmoid(a)`` and ``w = exp(WKV_DECAY * sigmoid(decay))``, the
    direction to remove is ``z = k * removal`` divided by its length (at least 1e-12), and the key is
    ``k = k * (1 + (rate - 1) * mixing)``. Then, with the state S ``[head_dim, head_dim]`` of the head,
    ``S = diag(w) S - outer(rate * z, z S) + outer(k, v)``, where ``z S`` is that of the state before the row,
    ``out = r S``, and ``bonus = sum(r * k * bonuses) * v``.

    A row has the same results whatever rows share its step: the state is that after the row before it.
    """

    kind: ClassVar[str] = "generalized_delta"
    read_fields: ClassVar[tuple[str, ...]] = ("r", "k", "v", "decay", "a")
    write_fields: ClassVar[tuple[str, ...]] = ("out", "bonus")
    tensor_fields: ClassVar[tuple[str, ...]] = ("removal", "mixing", "bonuses")
    r: str
    """``[rows, heads * head_dim]``, as all others: what a row reads of the state."""
    k: str
    v: str
    decay: str
    """How much each element of a key makes its row of the state decay."""
    a: str
    """The rate at which the state learns, for each element of a key."""
    out: str
    bonus: str
    """What a row reads of itself, in addition to ``out``."""
    removal: TensorRef
    """``[heads * head_dim]``, as all others."""
    mixing: TensorRef
    bonuses: TensorRef
    group: int
    """`KVGroup.id` of the ``state`` group that the layer belongs to."""
    layer: int
    """Number of the layer in the model."""
    heads: int
    """Number of heads, each with a state."""
    head_dim: int
    offset: int = 0
    """Float32 elements of the state of a layer before those of the op."""

    @property
    def sizes(self) -> StateSizes:
        """The sizes that decide how much is kept; there is no convolution."""
        return StateSizes(self.heads, self.heads, self.head_dim, self.head_dim, 1)

    @property
    def row_elements(self) -> int:
        """Elements that a row is turned into before it changes the state: keys, directions to remove, what is
        put in their place, and decays.
        """
        return 4 * self.heads * self.head_dim

    @property
    def state_elements(self) -> int:
        """Float32 elements of the state: a matrix for each head."""
        return self.sizes.elements
