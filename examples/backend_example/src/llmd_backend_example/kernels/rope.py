"""Rotates pairs of elements of each head by the row's position, with float64 angles for long contexts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Program, Rope, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch


def load_rope(slotted: SlottedOp, _weights: Sequence[WeightData | None], program: Program) -> RopeKernel:
    assert isinstance(slotted.op, Rope)
    return RopeKernel(slotted.op, program.context_len)


class RopeKernel:
    def __init__(self, op: Rope, context_len: int) -> None:
        self._op = op
        angles = np.arange(context_len)[:, None, None] * np.array(op.table.inv_freq)
        self._cos = (np.cos(angles) * op.table.factor).astype(np.float32)
        self._sin = (np.sin(angles) * op.table.factor).astype(np.float32)

    def run(self, batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        op, dim = self._op, self._op.table.rotary_dim
        cos, sin = self._cos[batch.step.positions], self._sin[batch.step.positions]
        out = inputs[0].reshape(len(inputs[0]), op.heads, op.head_dim).copy()
        first, second = (
            (slice(0, dim, 2), slice(1, dim, 2))
            if op.interleaved
            else (slice(dim // 2), slice(dim // 2, dim))
        )
        a, b = out[..., first].copy(), out[..., second].copy()
        out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
        return [out.reshape(inputs[0].shape)]
