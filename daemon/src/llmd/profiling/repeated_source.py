"""Weights that are made quickly: some random rows, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from llmd.api.tensors import TensorRef, Weight, WeightData
from llmd.testing.sources import RandomSource

ROWS = 32
"""Rows that differ. Zeros would not do: some kernels skip them."""


class RepeatedSource:
    """See `llmd.api.TensorSource`."""

    packed = None

    def __init__(self) -> None:
        self._random = RandomSource()

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        return None

    def read(self, weight: Weight) -> WeightData:
        rows, *rest = weight.ref.data_shape
        few = TensorRef(weight.ref.name, (min(rows, ROWS), *rest))
        drawn = self._random.read(Weight(few, weight.format))
        return drawn if rows <= ROWS else drawn.rows(np.arange(rows) % ROWS)
