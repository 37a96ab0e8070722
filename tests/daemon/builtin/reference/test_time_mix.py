from __future__ import annotations

import numpy as np
import pytest

from llmd.api import GeneralizedDelta, TensorRef
from llmd.builtin.reference.numerics import sigmoid
from llmd.builtin.reference.time_mix import WkvTensors, run_generalized_delta, shift_tokens

HEADS, DIM, ROWS = 3, 5, 7
WIDTH = HEADS * DIM
VECTOR = TensorRef("vector", (WIDTH,))
OP = GeneralizedDelta(
    "r", "k", "v", "w", "a", "y", "b", VECTOR, VECTOR, VECTOR, group=0, layer=0, heads=HEADS, head_dim=DIM
)


def drawn(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


TENSORS = WkvTensors(*(drawn(WIDTH, seed=seed) for seed in range(3)))
VALUES = tuple(drawn(ROWS, WIDTH, seed=seed).astype(np.float32) for seed in range(3, 8))
EMPTY = np.zeros(HEADS * DIM * DIM, np.float32)


def by_definition() -> np.ndarray:
    """Return output and bonus with loops over heads, states ``[values, keys]`` and products of matrices."""
    out = np.empty((ROWS, 2, HEADS, DIM))
    for head in range(HEADS):
        own = slice(head * DIM, (head + 1) * DIM)
        removal, mixing, bonuses = (
            tensor[own] for tensor in (TENSORS.removal, TENSORS.mixing, TENSORS.bonuses)
        )
        state = np.zeros((DIM, DIM))
        for row in range(ROWS):
            r, k, v, w, a = (value[row, own].astype(np.float64) for value in VALUES)
            rate, decay = sigmoid(a), np.exp(-np.exp(-0.5) * sigmoid(w))
            removed = k * removal / np.linalg.norm(k * removal)
            key = k * (1 + (rate - 1) * mixing)
            transition = np.diag(decay) - np.outer(removed, rate * removed)
            state = state @ transition + np.outer(v, key)
            out[row, 0, head] = state @ r
            out[row, 1, head] = (r * key * bonuses).sum() * v
    return out.reshape(ROWS, -1)


def test_the_state_is_changed_as_the_paper_says() -> None:
    out, _ = run_generalized_delta(OP, TENSORS, VALUES, EMPTY)
    assert out == pytest.approx(by_definition(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("cut", [1, 4, ROWS - 1])
def test_a_split_gives_the_same_bits(cut: int) -> None:
    whole, last = run_generalized_delta(OP, TENSORS, VALUES, EMPTY)
    first, state = run_generalized_delta(OP, TENSORS, tuple(x[:cut] for x in VALUES), EMPTY)
    second, state = run_generalized_delta(OP, TENSORS, tuple(x[cut:] for x in VALUES), state)
    assert np.array_equal(np.concatenate([first, second]), whole)
    assert np.array_equal(state, last)


def test_a_key_of_zeros_removes_nothing() -> None:
    r, k, v, decay, a = VALUES
    out, state = run_generalized_delta(OP, TENSORS, (r, 0 * k, v, decay, a), EMPTY)
    assert not out.any()
    assert not state.any()


def test_rows_are_mixed_with_those_before_them() -> None:
    rows = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 70.0]], np.float32)
    shares = [np.array([0.0, 0.5]), np.array([1.0, 0.25])]
    out, last = shift_tokens(shares, (rows,), np.array([3.0, 2.0, 99.0], np.float32))
    assert out.tolist() == [[1.0, 6.0, 3.0, 8.0], [2.0, 20.0, 1.0, 25.0], [4.0, 50.0, 2.0, 60.0]]
    assert last.tolist() == [4.0, 70.0]
