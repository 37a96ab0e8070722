from __future__ import annotations

import numpy as np
import pytest

from llmd.api.tensors import TensorRef, Weight
from llmd.profiling.repeated_source import ROWS, RepeatedSource

SHAPE = (2 * ROWS + 5, 64)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "q8", "q4", "q4_g32", "q4_k"])
def test_rows_repeat_in_every_format(name: str) -> None:
    shape = (SHAPE[0], 256)
    data = RepeatedSource().read(Weight(TensorRef("w", shape), name))
    assert all(len(array) == shape[0] for array in data.arrays)
    for array in data.arrays:
        np.testing.assert_array_equal(array[:ROWS], array[ROWS : 2 * ROWS])
        np.testing.assert_array_equal(array[:5], array[2 * ROWS :])
    assert len(np.unique(data.data[:ROWS], axis=0)) == ROWS, "rows that differ"
    assert data.data.flags.c_contiguous


def test_few_rows_and_vectors_are_as_they_are_drawn() -> None:
    source = RepeatedSource()
    assert source.read(Weight(TensorRef("few", (3, 8)), "f32")).data.shape == (3, 8)
    vector = source.read(Weight(TensorRef("v", (8,)), "f32")).data
    assert vector.shape == (8,)


def test_nothing_is_on_a_disk() -> None:
    source = RepeatedSource()
    weights = [Weight(TensorRef(name, SHAPE), "f32") for name in "ab"]
    with source.reading_ahead(weights) as order:
        assert list(order) == [0, 1]
    assert source.stored_blocks(Weight(TensorRef("w", SHAPE), "q4_k")) is None
    assert source.packed is None
