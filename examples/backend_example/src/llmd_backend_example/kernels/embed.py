"""``out[r] = table[token_ids[r]] * scale``. The table keeps its stored format: only some rows are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmd.api import Embed, Program, SlottedOp, WeightData
from llmd.api.step import Float32
from llmd_backend_example.kernels.kernel import Batch, to_float32


def load_embed(slotted: SlottedOp, weights: Sequence[WeightData | None], _program: Program) -> EmbedKernel:
    assert isinstance(slotted.op, Embed)
    (table,) = weights
    assert table is not None
    return EmbedKernel(slotted.op, WeightData(table.format, table.data.copy()))


class EmbedKernel:
    def __init__(self, op: Embed, table: WeightData) -> None:
        self._scale = np.float32(op.scale)
        self._table = table

    def run(self, batch: Batch, _inputs: Sequence[Float32]) -> Sequence[Float32]:
        rows = WeightData(self._table.format, self._table.data[batch.tokens])
        return [to_float32(rows) * self._scale]
