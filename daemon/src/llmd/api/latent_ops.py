"""The ops that latent attention needs beside `Attention`, and the one that chooses its positions.

Multi-head latent attention keeps one vector for each token, of which every head reads keys and values. The
matrices that would make them from it are applied to queries and to what attention returns instead, so that
attention has one key-value head, with a group of kind ``latent``.

Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language
Model", section 2.1 and appendix C.
"""

from __future__ import annotations

from typing import ClassVar

from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef


class HeadLinear(BaseOp, frozen=True, tag="head_linear"):
    """``out = x @ weight[h].T`` for each head h: a matrix for each of the equal slices of a row."""

    kind: ClassVar[str] = "head_linear"
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight",)
    x: str
    """``[rows, heads * in]``."""
    out: str
    """``[rows, heads * out]``."""
    weight: TensorRef
    """A stack ``[heads, out, in]``."""

    @property
    def heads(self) -> int:
        """Number of matrices."""
        return self.weight.view_shape[0]

    @property
    def row_elements(self) -> int:
        """Elements that enter and leave the matrices of all heads for one row."""
        return self.heads * sum(self.weight.view_shape[1:])


class Join(BaseOp, frozen=True, tag="join"):
    """``out = [a of head 0, b of head 0, a of head 1, …]``: join the slices of two values, head by head."""

    kind: ClassVar[str] = "join"
    read_fields: ClassVar[tuple[str, ...]] = ("a", "b")
    a: str
    b: str
    out: str
    heads: int
    """Number of slices."""


class Indexer(BaseOp, frozen=True, tag="indexer"):
    """Choose the positions that attention is limited to: write the index keys ``k`` of the step, then score.

    The score of a position is ``sum over heads h of head_weights[h] * max(q[h].k, 0)``. A row at position
    ``p`` gets the ``min(p + 1, top_k)`` positions of ``0 .. p`` with the highest scores, of equal ones the
    later positions. They ascend, and -1 fills the rest of the row.

    The KV group has the kind ``latent``: one index key for each token, which has no value. If it has a
    ``stride``, positions are those of vectors, as in `llmd.api.ops.Attention`: a row chooses of the first
    ``(p + 1) // stride``.

    Source: DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models", section 2.1
    (DeepSeek Sparse Attention).
    """

    kind: ClassVar[str] = "indexer"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "head_weights")
    q: str
    """``[rows, heads * head_dim]``."""
    k: str
    """``[rows, head_dim]``."""
    head_weights: str
    """``[rows, heads]``."""
    out: str
    """``[rows, top_k]``."""
    group: int
    """`KVGroup.id` of the group that keeps index keys."""
    layer: int
    """Number of the layer in the model."""
    heads: int
    """Number of index heads."""
    head_dim: int
    """Elements of an index query and of an index key."""
    top_k: int
    """Most positions that a row attends to."""
