"""``softcap(x @ weight.T * scale + bias)`` for the selected rows; `OutputRows` processes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Head, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32
from llmd_backend_example.kernels.linear import LinearKernel


def load_head(slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> HeadKernel:
    assert isinstance(slotted.op, Head)
    matrix, bias = weights
    assert matrix is not None
    return HeadKernel(slotted.op, to_float32(matrix), None if bias is None else to_float32(bias))


class HeadKernel:
    """The only op that skips rows: a prompt needs only the logits of its last row."""

    def __init__(self, op: Head, matrix: Float32, bias: Float32 | None) -> None:
        self._op = op
        self._linear = LinearKernel([matrix * np.float32(op.scale)], [bias])

    def run(self, batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """Return the logits ``[output rows, vocabulary]``."""
        assert batch.selection is not None
        logits = self._linear.rows(inputs[0][batch.selection.rows])
        if self._op.softcap is not None:
            logits = np.float32(self._op.softcap) * np.tanh(logits / np.float32(self._op.softcap))
        return [logits]
