from __future__ import annotations

import numpy as np
import pytest

from llmd.builtin.reference.rotation import rotate


@pytest.mark.parametrize("head_dim", [1, 2, 12, 64, 96, 128])
def test_a_rotation_keeps_lengths_and_products_and_undoes_itself(head_dim: int) -> None:
    q, k = np.random.default_rng(1).standard_normal((2, 5, head_dim))
    np.testing.assert_allclose(np.sum(rotate(q) * rotate(k), axis=-1), np.sum(q * k, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(rotate(rotate(q)), q, rtol=1e-12, atol=1e-12)


def test_one_element_is_spread_over_its_block_alone() -> None:
    x = np.zeros(96, np.float32)
    x[70] = 4.0
    rotated = rotate(x)
    assert not rotated[:64].any()
    np.testing.assert_allclose(np.abs(rotated[64:]), 4 / np.sqrt(32), rtol=1e-6)


def test_the_order_of_signs_is_that_of_sylvester() -> None:
    columns = np.stack([rotate(row) for row in np.eye(4)], axis=1) * 2
    assert columns.tolist() == [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]


def test_the_dtype_is_that_of_the_head() -> None:
    assert rotate(np.ones((2, 12), np.float32)).dtype == np.float32
