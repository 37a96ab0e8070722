"""``x / sqrt(mean(x^2) + eps) * (offset + weight)``, or LayerNorm, over each row or each head of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Norm, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32


def load_norm(slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> NormKernel:
    assert isinstance(slotted.op, Norm)
    weight, bias = (None if data is None else to_float32(data) for data in weights)
    return NormKernel(slotted.op, weight, bias)


class NormKernel:
    def __init__(self, op: Norm, weight: Float32 | None, bias: Float32 | None) -> None:
        self._op = op
        self._gain = np.float32(1) if weight is None else weight + np.float32(op.offset)
        self._bias = np.float32(0) if bias is None else bias

    def run(self, _batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        pieces = inputs[0].reshape(len(inputs[0]), self._op.heads, -1)
        if self._op.method == "layer":
            pieces = pieces - pieces.mean(axis=-1, keepdims=True)
        squares = np.square(pieces).mean(axis=-1, keepdims=True)
        scaled = pieces / np.sqrt(squares + np.float32(self._op.eps)) * self._gain + self._bias
        return [scaled.reshape(inputs[0].shape)]
