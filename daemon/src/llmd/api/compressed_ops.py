"""The ops that compressed attention needs beside `Attention` and `Indexer`.

In compressed attention, one vector stands for several tokens: a group of kind ``latent`` with a stride. The
tokens before them that are near are seen one by one, in a group with a window; each row merges what it finds
in both.

Source: DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.3 (compressed sparse attention and
heavily compressed attention).
"""

from __future__ import annotations

from typing import ClassVar

from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef


class Compress(BaseOp, frozen=True, tag="compress"):
    """Make one vector of the vectors of ``stride`` tokens, with weights for each element.

    Write ``x`` and ``gate`` of the step. The row of the last token of ``stride * e .. stride * (e + 1) - 1``
    then gets, for each element, ``sum of softmax(gate[t] + bias[t % stride]) * x[t]`` over these tokens. All
    other rows are 0.

    With ``overlap``, ``x``, ``gate`` and ``bias`` have twice as many elements. The sum is taken over twice as
    many tokens: over the last half of the elements of these, and over the first half of the elements of the
    ``stride`` tokens before them, if there are any.

    The KV group has the kind ``latent`` and a window of as many tokens as a row reads. It keeps ``x`` and
    ``gate``, one behind the other.

    Source: DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.3, equations 9 to 12 and 20 to 23.
    """

    kind: ClassVar[str] = "compress"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "gate")
    tensor_fields: ClassVar[tuple[str, ...]] = ("bias",)
    x: str
    """``[rows, dim]``, with ``overlap`` ``[rows, 2 * dim]``."""
    gate: str
    """As ``x``."""
    out: str
    """``[rows, dim]``."""
    bias: TensorRef
    """``[stride * elements of x]``: those for the first token of a vector, then for the next."""
    group: int
    """`KVGroup.id` of the group that keeps ``x`` and ``gate``."""
    layer: int
    """Number of the layer in the model."""
    dim: int
    """Elements of the vectors that it makes."""
    stride: int
    """Tokens for each vector."""
    overlap: bool = False

    @property
    def span(self) -> int:
        """Tokens that a row reads, itself included."""
        return self.stride * (1 + self.overlap)


class MergeAttention(BaseOp, frozen=True, tag="merge_attention"):
    """Attention over two sets of positions from that over each: ``out = sum of weight * value``.

    With ``s = log(exp(a_sums) + exp(b_sums))``, each head of a row is
    ``a * exp(a_sums - s) + b * exp(b_sums - s)``. One of both sets may be empty: its sum is minus infinity.

    Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax".
    """

    kind: ClassVar[str] = "merge_attention"
    read_fields: ClassVar[tuple[str, ...]] = ("a", "a_sums", "b", "b_sums")
    a: str
    """``[rows, heads * value_dim]``, the result of an `Attention`."""
    a_sums: str
    """``[rows, heads]``: its ``sums``."""
    b: str
    """As ``a``."""
    b_sums: str
    """As ``a_sums``."""
    out: str
    heads: int
    """Number of query heads."""
