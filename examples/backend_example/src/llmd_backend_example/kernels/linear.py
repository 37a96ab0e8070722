"""``outs[i] = x @ weights[i].T + biases[i]``: the op in which nearly all time goes.

Layout: the weights ``[out, in]`` of the op stand below each other in one float32 matrix. Queries, keys and values are then
one product, which reads ``x`` once.
Launch: one call of BLAS for all rows of the step. With one row it reads the matrix at the speed of memory (the time of a
decode step), with many it computes on all cores (prefill).
Tolerance: float32 sums in BLAS's order, NMSE about 1e-14. That order depends on the number of rows, so a row alone differs
from the same row among others in its last bits: the device must not claim `row_exact`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32


def load_linear(_slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> LinearKernel:
    """The op's weights and biases in turn, as ``op.tensors`` has them."""
    matrices = [to_float32(weight) for weight in weights[0::2] if weight is not None]
    biases = [None if bias is None else to_float32(bias) for bias in weights[1::2]]
    return LinearKernel(matrices, biases)


class LinearKernel:
    """Matrices ``[out, in]`` on the same input, each with a bias or none."""

    def __init__(self, matrices: Sequence[Float32], biases: Sequence[Float32 | None]) -> None:
        self._matrix = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
        pairs = zip(matrices, biases, strict=True)
        self._bias = np.concatenate([np.zeros(len(m), np.float32) if b is None else b for m, b in pairs])
        self._cuts = np.cumsum([len(matrix) for matrix in matrices])[:-1]

    def run(self, _batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """One output for each matrix."""
        return np.split(self.rows(inputs[0]), self._cuts, axis=1)

    def rows(self, x: Float32) -> Float32:
        """``[rows, in]`` → ``[rows, all outs]``."""
        product: Float32 = x @ self._matrix.T
        product += self._bias
        return product
