"""``outs[i] = x @ weights[i].T + biases[i]``: the op that takes nearly all the time.

Layout: the weights ``[out, in]`` of the op are stacked in one float32 matrix. Queries, keys and values are
then one product, which reads ``x`` once. Launch: one BLAS call for all rows of the step. With one row
(decode) it is bound by memory bandwidth; with many rows (prefill) it computes on all cores. Tolerance:
float32 sums in BLAS's order, NMSE about 1e-14. The order depends on the number of rows, so the last bits of a
row differ between a batch and the row alone: the device must not claim `row_exact`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32


def load_linear(_slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> LinearKernel:
    """Load the op's weights and biases, which alternate in ``op.tensors``."""
    matrices = [to_float32(weight) for weight in weights[0::2] if weight is not None]
    biases = [None if bias is None else to_float32(bias) for bias in weights[1::2]]
    return LinearKernel(matrices, biases)


class LinearKernel:
    """Matrices ``[out, in]`` with the same input, each with an optional bias."""

    def __init__(self, matrices: Sequence[Float32], biases: Sequence[Float32 | None]) -> None:
        self._matrix = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
        pairs = zip(matrices, biases, strict=True)
        self._bias = np.concatenate([np.zeros(len(m), np.float32) if b is None else b for m, b in pairs])
        self._cuts = np.cumsum([len(matrix) for matrix in matrices])[:-1]

    def run(self, _batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """Return one output per matrix."""
        return np.split(self.rows(inputs[0]), self._cuts, axis=1)

    def rows(self, x: Float32) -> Float32:
        """``[rows, in]`` → ``[rows, all outs]``."""
        product: Float32 = x @ self._matrix.T
        product += self._bias
        return product
