"""Weights of streams, and mixtures by them."""

from __future__ import annotations

import numpy as np

from llmd.api import CollapseStreams, MixStreams, StreamWeights, TensorRef
from llmd.builtin.reference.streams import collapse_streams, mix_streams, stream_weights

NO_TENSOR = TensorRef("t", (1,))


def weights_op(streams: int, rounds: int, floor: float = 0.0) -> StreamWeights:
    return StreamWeights("x", "w", NO_TENSOR, NO_TENSOR, NO_TENSOR, streams, 0.0, floor, rounds)


def test_a_matrix_of_streams_becomes_doubly_stochastic() -> None:
    draw = np.random.default_rng(3)
    x, weight, bias = draw.standard_normal((5, 12)), draw.standard_normal((15, 12)), draw.standard_normal(15)
    found = stream_weights(weights_op(3, 200), x, weight, bias, np.array([1.0, 2.0, 0.5]))
    matrices = found[:, 6:].reshape(-1, 3, 3)
    np.testing.assert_allclose(matrices.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0, rtol=1e-6)


def test_the_first_weights_are_sigmoids_of_the_scaled_products_of_the_normed_row() -> None:
    x, weight = np.array([[3.0, -4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    z = x[0] / np.sqrt(12.5) * 2.0 + [0.5, -0.5]
    (found,) = stream_weights(weights_op(2, 0, floor=0.25), x, weight, np.array([0.5, -0.5]), np.array([2.0]))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-z)) + 0.25, rtol=1e-12)


def test_one_round_divides_the_columns_alone() -> None:
    scale, bias = np.zeros(3), np.arange(8.0)
    (found,) = stream_weights(weights_op(2, 1), np.ones((1, 4)), np.zeros((8, 4)), bias, scale)
    np.testing.assert_allclose(found[2:4], 2 / (1 + np.exp([-2.0, -3.0])), rtol=1e-12)
    np.testing.assert_allclose(found[4:], [0.5, 0.5, 0.5, 0.5], rtol=1e-12)  # equal rows


def test_streams_are_collapsed_and_mixed_with_the_columns_of_the_matrix() -> None:
    x, y = np.array([[1.0, 2.0, 10.0, 20.0]]), np.array([[100.0, 200.0]])
    weights = np.array([[2.0, 3.0, 0.5, 0.25, 1.0, 0.0, 4.0, 5.0]])
    assert collapse_streams(CollapseStreams("x", "w", "o", 2), x, weights).tolist() == [[32.0, 64.0]]
    mixed = mix_streams(MixStreams("x", "y", "w", "o", 2), x, y, weights)
    assert mixed.tolist() == [[50.0 + 1 + 40, 100.0 + 2 + 80, 25.0 + 50, 50.0 + 100]]
