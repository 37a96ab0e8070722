"""Causal attention over paged keys and values: first the step's own are written, then each row attends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from llmd.api import Attention, KVGroup, Program, SlottedOp, WeightData
from llmd.api.step import Float32, Int32
from llmd_backend_example.kernels.kernel import Batch
from llmd_backend_example.kv import KVPool


def load_attention(
    slotted: SlottedOp, _weights: Sequence[WeightData | None], program: Program
) -> AttentionKernel:
    assert isinstance(slotted.op, Attention)
    assert slotted.kv_layer is not None
    return AttentionKernel(slotted.op, program.groups[slotted.op.group], slotted.kv_layer)


class AttentionKernel:
    """``layer`` is the op's layer index in the pool of its group on this device."""

    def __init__(self, op: Attention, group: KVGroup, layer: int) -> None:
        self._op = op
        self._group = group
        self._layer = layer

    def run(self, batch: Batch, inputs: Sequence[Float32]) -> Sequence[Float32]:
        """Process one sequence after the other: the rows of a sequence share keys and values."""
        op, step = self._op, batch.step
        heads = (op.heads, op.kv_heads, op.kv_heads)
        q, k, v = (x.reshape(len(x), n, op.head_dim) for x, n in zip(inputs, heads, strict=True))
        out = np.empty_like(q)
        tables = step.block_tables[op.group]
        for table, (first, last) in zip(tables, itertools.pairwise(step.row_offsets.tolist()), strict=True):
            rows = slice(first, last)
            positions, pool = step.positions[rows], batch.pools[op.group]
            pool.write(self._layer, table, positions, k[rows], v[rows])
            out[rows] = self._attend(q[rows], positions, table, pool)
        return [out.reshape(len(out), -1)]

    def _attend(self, q: Float32, positions: Int32, table: Int32, pool: KVPool) -> Float32:
        op, window = self._op, self._group.window or int(positions[-1]) + 1
        first, last = max(0, int(positions[0]) - window + 1), int(positions[-1]) + 1
        keys, values = pool.read(self._layer, table, first, last)
        # Query heads share keys: [kv_heads, rows * heads per KV head, head_dim] times [kv_heads, head_dim,
        # seen].
        grouped = q.reshape(len(q), op.kv_heads, -1, op.head_dim).transpose(1, 0, 2, 3)
        scores = (
            grouped.reshape(op.kv_heads, -1, op.head_dim) @ keys.transpose(1, 2, 0) * np.float32(op.scale)
        )
        if op.softcap is not None:
            scores = np.float32(op.softcap) * np.tanh(scores / np.float32(op.softcap))
        seen = np.arange(first, last)
        hidden = (seen > positions[:, None]) | (seen <= positions[:, None] - window)
        scores = np.where(hidden[:, None], -np.inf, scores.reshape(*grouped.shape[:3], -1))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed: Float32 = weights.reshape(op.kv_heads, -1, last - first) @ values.transpose(1, 0, 2)
        by_row: Float32 = mixed.reshape(grouped.shape).transpose(1, 0, 2, 3).reshape(q.shape)
        return by_row
