from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.state_ops import StateSpace
from llmd.builtin.reference.state_space import SpaceTensors, run_space

HEADS, GROUPS, STATE, DIM, TAPS, ROWS = 4, 2, 3, 5, 3, 7
WIDTHS = (GROUPS * STATE, GROUPS * STATE, HEADS * DIM)


def space(**fields: Any) -> StateSpace:
    c, b, x = (TensorRef(name, (width, 1, TAPS)) for name, width in zip("cbx", WIDTHS, strict=True))
    rates, bias, skips = (TensorRef(name, (HEADS,)) for name in ("rates", "bias", "skips"))
    sizes = {"heads": HEADS, "groups": GROUPS, "state_size": STATE, "head_dim": DIM}
    return StateSpace("c", "b", "x", "time", "out", c, b, x, rates, bias, skips, 0, 0, **{**sizes, **fields})


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


TENSORS = SpaceTensors(
    drawn(WIDTHS[0], 1, TAPS),
    drawn(WIDTHS[1], 1, TAPS, seed=1),
    drawn(WIDTHS[2], 1, TAPS),
    drawn(HEADS),
    drawn(HEADS, seed=1),
    drawn(HEADS, seed=2),
    tuple(drawn(width, seed=number) for number, width in enumerate(WIDTHS)),
)
VALUES = tuple(drawn(ROWS, width, seed=9).astype(np.float32) for width in (*WIDTHS, HEADS))


def zeros(op: StateSpace) -> np.ndarray:
    return np.zeros(op.state_elements, np.float32)


def by_definition(op: StateSpace, tensors: SpaceTensors = TENSORS) -> np.ndarray:
    """Return the output, with loops over heads and a state that is never rounded."""
    seen = np.concatenate(VALUES[:3], axis=1).astype(np.float64)
    seen = np.concatenate([np.zeros((TAPS - 1, seen.shape[1])), seen])
    taps = np.concatenate([tensors.c_taps, tensors.b_taps, tensors.x_taps])[:, 0]
    states, out = np.zeros((HEADS, DIM, STATE)), np.empty((ROWS, HEADS, DIM))
    for row in range(ROWS):
        mixed = (seen[row : row + TAPS].T * taps).sum(axis=1) + tensors.filter_bias
        mixed = mixed / (1 + np.exp(-mixed))
        for head in range(HEADS):
            group = head // (HEADS // GROUPS)
            c, b = (mixed[at + group * STATE :][:STATE] for at in (0, WIDTHS[0]))
            x = mixed[2 * WIDTHS[0] + head * DIM :][:DIM]
            time = np.log1p(np.exp(VALUES[3][row, head] + tensors.bias[head]))
            time = min(max(time, op.least_time), op.most_time or np.inf)
            rate = np.exp(tensors.rates[head]) if op.rates_as == "log" else -tensors.rates[head]
            states[head] = np.exp(-rate * time) * states[head] + time * np.outer(x, b)
            out[row, head] = states[head] @ c + tensors.skips[head] * x
    return out.reshape(ROWS, -1)


@pytest.mark.parametrize(
    "fields", [{}, {"least_time": 0.5, "most_time": 0.9}, {"least_time": 0.7}, {"rates_as": "negative"}]
)
def test_the_state_is_that_of_the_definition(fields: dict[str, Any]) -> None:
    op = space(**fields)
    out, _ = run_space(op, TENSORS, VALUES, zeros(op))
    np.testing.assert_allclose(out, by_definition(op), rtol=2e-5, atol=1e-5)


def test_convolutions_may_have_no_biases() -> None:
    bare = msgspec.structs.replace(TENSORS, filter_biases=())
    out, _ = run_space(space(), bare, VALUES, zeros(space()))
    np.testing.assert_allclose(out, by_definition(space(), bare), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("cut", range(1, ROWS))
def test_a_row_has_the_same_bits_in_any_split(cut: int) -> None:
    op = space()
    whole, last = run_space(op, TENSORS, VALUES, zeros(op))
    first, between = run_space(op, TENSORS, tuple(value[:cut] for value in VALUES), zeros(op))
    rest, end = run_space(op, TENSORS, tuple(value[cut:] for value in VALUES), between)
    np.testing.assert_array_equal(np.concatenate([first, rest]), whole)
    np.testing.assert_array_equal(end, last)
