"""The ops of hyper-connections: residual connections of several streams in place of one.

A row of hidden states has ``streams`` slices. A layer reads one mixture of them. The next slices are other
mixtures of them, to each of which the output of the layer is added. All weights of these mixtures depend on
the row.

Source: Zhu et al. 2024, "Hyper-Connections"; Xie et al. 2026, "mHC: Manifold-Constrained Hyper-Connections".
"""

from __future__ import annotations

from typing import ClassVar

from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef


class StreamWeights(BaseOp, frozen=True, tag="stream_weights"):
    """The weights with which the streams of each row are mixed.

    With ``n`` streams and ``z = x / sqrt(mean(x^2) + eps) @ weight.T``, of which each of three parts is
    multiplied by its ``scale`` before ``bias`` is added: the first n elements become ``sigmoid(z) + floor``
    (the weights of what a layer reads), the next n ``2 * sigmoid(z)`` (of what it writes), and the others are
    a matrix of n rows: a softmax of each row plus ``floor``, whose columns and rows are then divided by their
    sums plus ``floor`` in turn, columns first and last, ``rounds`` times the columns (Sinkhorn & Knopp 1967).

    With ``rounds`` 0, there is only the first part. Nothing is rounded.
    """

    kind: ClassVar[str] = "stream_weights"
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias", "scale")
    x: str
    """``[rows, streams * width]``."""
    out: str
    """``[rows, streams * (streams + 2)]``, or ``[rows, streams]``."""
    weight: TensorRef
    """``[elements of out, streams * width]``, read as plain numbers."""
    bias: TensorRef
    """``[elements of out]``."""
    scale: TensorRef
    """``[3]``, or ``[1]``."""
    streams: int
    eps: float
    """Added to the mean square."""
    floor: float
    rounds: int


class CollapseStreams(BaseOp, frozen=True, tag="collapse_streams"):
    """``out = sum over streams i of weights[i] * x[i]``: what a layer reads."""

    kind: ClassVar[str] = "collapse_streams"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "weights")
    x: str
    """``[rows, streams * width]``."""
    weights: str
    """What `StreamWeights` wrote; the first ``streams`` elements of a row are read."""
    out: str
    """``[rows, width]``."""
    streams: int


class MixStreams(BaseOp, frozen=True, tag="mix_streams"):
    """``out[k] = write[k] * y + sum over streams i of mix[i, k] * x[i]``: the residual connection."""

    kind: ClassVar[str] = "mix_streams"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "y", "weights")
    x: str
    """``[rows, streams * width]``."""
    y: str
    """``[rows, width]``: the output of the layer."""
    weights: str
    """What `StreamWeights` wrote: ``write`` are the second ``streams`` elements of a row, ``mix`` the others.
    """
    out: str
    """``[rows, streams * width]``."""
    streams: int
