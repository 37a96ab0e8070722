from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.embedding import Pooling
from llmd.engine.pooling import open_pool

ROWS = np.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0], [7.0, -8.0]], np.float32)
EXPECTED: dict[Pooling, list[float]] = {
    "cls": [1.0, -2.0],
    "last": [7.0, -8.0],
    "max": [7.0, 6.0],
    "mean": [1.5, 0.0],
    "mean_sqrt_len": [3.0, 0.0],
    "weighted_mean": [2.0, -0.8],
}


def pooled(poolings: tuple[Pooling, ...], rows: NDArray[np.float32], *cuts: int) -> NDArray[np.float32]:
    pool = open_pool(poolings)
    for part in np.split(rows, cuts):
        pool.add(part)
    return pool.vector()


@pytest.mark.parametrize("pooling", EXPECTED)
def test_each_pooling_follows_its_formula(pooling: Pooling) -> None:
    vector = pooled((pooling,), ROWS)
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, EXPECTED[pooling], rtol=1e-7)


@pytest.mark.parametrize("pooling", EXPECTED)
def test_bits_depend_on_no_chunks(pooling: Pooling) -> None:
    rows = np.random.default_rng(1).standard_normal((300, 33)).astype(np.float32) * 1e3
    whole = pooled((pooling,), rows)
    for cuts in ((1,), (7, 130), tuple(range(1, 300))):
        assert np.array_equal(pooled((pooling,), rows, *cuts), whole)


def test_several_poolings_follow_one_another() -> None:
    assert pooled(("cls", "last"), ROWS, 2).tolist() == [1.0, -2.0, 7.0, -8.0]


def test_rows_may_be_written_over_once_they_were_added() -> None:
    rows = ROWS.copy()
    pool = open_pool(("cls", "max", "last"))
    pool.add(rows)
    rows[:] = 0
    assert pool.vector().tolist() == [1.0, -2.0, 7.0, 6.0, 7.0, -8.0]
