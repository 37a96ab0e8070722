"""``out = a + b * scale``: the residual connection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Add, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch


def load_add(slotted: SlottedOp, _weights: Sequence[WeightData | None], _program: Program) -> AddKernel:
    assert isinstance(slotted.op, Add)
    return AddKernel(slotted.op)


class AddKernel:
    def __init__(self, op: Add) -> None:
        self._scale = np.float32(op.scale)

    def run(self, _batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        return [inputs[0] + inputs[1] * self._scale]
