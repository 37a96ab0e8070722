from __future__ import annotations

import numpy as np

from llmd.builtin.reference.convolution import convolved


def test_a_row_is_the_sum_of_the_last_rows_through_silu() -> None:
    seen = np.array([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]], np.float32)
    filters = np.array([[[0.5, 2.0]], [[1.0, -1.0]]])
    sums = np.array([[0.5 * 1 + 2 * 3, 2 + 4], [0.5 * 3 + 2 * 5, -4 - 6]]) + np.array([0.25, 1.0])
    got = convolved(seen, filters, np.array([0.25, 1.0]))
    np.testing.assert_allclose(got, sums / (1 + np.exp(-sums)))
