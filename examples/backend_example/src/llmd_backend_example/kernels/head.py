"""``softcap(x @ weight.T * scale + bias)`` for the rows that the selection names; what the rows become is `OutputRows`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Head, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32
from llmd_backend_example.kernels.linear import LinearKernel


def load_head(slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> HeadKernel:
    """A matrix of the vocabulary, with a bias or none."""
    assert isinstance(slotted.op, Head)
    matrix, bias = weights
    assert matrix is not None
    return HeadKernel(slotted.op, to_float32(matrix), None if bias is None else to_float32(bias))


class HeadKernel:
    """The only op that leaves out rows: a prompt needs the logits of its last row alone."""

    def __init__(self, op: Head, matrix: Float32, bias: Float32 | None) -> None:
        self._op = op
        self._linear = LinearKernel([matrix * np.float32(op.scale)], [bias])

    def run(self, batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """Logits ``[output rows, vocabulary]``."""
        assert batch.selection is not None
        logits = self._linear.rows(inputs[0][batch.selection.rows])
        if self._op.softcap is not None:
            logits = np.float32(self._op.softcap) * np.tanh(logits / np.float32(self._op.softcap))
        return [logits]
