"""Ops of single elements."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.activations import ACTIVATIONS, Activation
from llmd.api.latent_ops import Join
from llmd.api.ops import Activate, Add, Gate, Glu, Multiply
from llmd.api.step import Float32
from llmd_backend_cuda.ops.elementwise import (
    launch_activate,
    launch_add,
    launch_gate,
    launch_glu,
    launch_join,
    launch_multiply,
)
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows

BOUND = 1e-12
WIDTHS = (1, 5, 48, 130, 4096)
LAUNCHES = {
    "add": launch_add,
    "glu": launch_glu,
    "activate": launch_activate,
    "gate": launch_gate,
    "multiply": launch_multiply,
    "join": launch_join,
}
FACTOR = np.array([-0.7], np.float32)


def _run(op: Add | Glu | Activate | Gate | Multiply | Join, *inputs: Float32) -> tuple[Float32, Float32]:
    """Return (what the kernel makes, what the reference makes)."""
    rows = len(inputs[0])
    widths = [x.shape[1] for x in inputs]
    width = sum(widths) if isinstance(op, Join) else widths[0]
    weights = (0,) if isinstance(op, Multiply) else ()
    one = OneInstruction(one_op(op, len(inputs), weights), (*widths, width), (FACTOR,))
    step, values = make_step((rows,)), dict(enumerate(inputs))
    device = OnDevice(one, step, values)
    launch = LAUNCHES[op.kind](device.context, one.instruction.ops[0], device.rows)
    (found,) = device.run(launch, len(inputs))
    return found, one.reference(step, values)[len(inputs)]


@pytest.mark.parametrize("width", WIDTHS)
def test_add(width: int) -> None:
    found, expected = _run(Add("a", "b", "out", 0.3), random_rows(3, width, 1), random_rows(3, width, 2))
    assert nmse(found, expected) < BOUND
    found, expected = _run(Add("a", "b", "out"), random_rows(3, width, 1), random_rows(3, width, 2))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("width", [5, 130])
def test_glu_and_activate(width: int, activation: Activation) -> None:
    gate, up = random_rows(3, width, 1, 3.0), random_rows(3, width, 2)
    found, expected = _run(Glu("gate", "up", "out", activation), gate, up)
    assert nmse(found, expected) < BOUND
    found, expected = _run(Activate("x", "out", activation), gate)
    assert nmse(found, expected) < BOUND


def test_glu_with_a_threshold() -> None:
    gate, up = random_rows(3, 48, 1), random_rows(3, 48, 2)
    found, expected = _run(Glu("gate", "up", "out", "relu", 0.4), gate, up)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("activation", ["silu", "relu"])
def test_glu_with_a_limit(activation: Activation) -> None:
    gate, up = random_rows(3, 50, 1, 3.0), random_rows(3, 50, 2, 3.0)
    op = Glu("gate", "up", "out", activation, limit=1.5)
    found, expected = _run(op, gate, up)
    assert nmse(found, expected) < BOUND
    up[0, :3] = 1e30, -1e30, np.nan
    found, expected = _run(op, gate, up)
    assert np.isnan(found[0, 2])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_large_values(activation: Activation) -> None:
    x = np.array([[-1e30, -3e4, -200, -90, -20, -6, -1e-8, 0, 1e-8, 6, 20, 90, 200, 3e4, 1e15]], np.float32)
    found, expected = _run(Activate("x", "out", activation), x)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("slices", [1, 6, 30])
def test_slices_of_a_row_have_their_gates(slices: int) -> None:
    x, gate = random_rows(5, 30, 1), random_rows(5, slices, 2, 3.0)
    found, expected = _run(Gate("x", "gate", "out"), x, gate)
    assert nmse(found, expected) < BOUND
    np.testing.assert_array_equal(_run(Gate("x", "gate", "out"), x[3:4], gate[3:4])[0], found[3:4])


@pytest.mark.parametrize("width", [5, 48])
def test_all_elements_have_one_factor(width: int) -> None:
    op = Multiply("x", "out", TensorRef("factor", (1,)))
    np.testing.assert_array_equal(*_run(op, random_rows(3, width)))


@pytest.mark.parametrize(("heads", "first", "second"), [(4, 13, 7), (1, 5, 2), (3, 8, 16), (5, 1, 2)])
def test_slices_of_two_values_are_joined(heads: int, first: int, second: int) -> None:
    a, b = random_rows(3, heads * first, 1), random_rows(3, heads * second, 2)
    np.testing.assert_array_equal(*_run(Join("a", "b", "out", heads), a, b))


def test_an_element_has_the_same_bits_at_any_place() -> None:
    gate, up = random_rows(7, 131, 1), random_rows(7, 131, 2)
    op = Glu("gate", "up", "out", "silu")
    together, _ = _run(op, gate, up)
    for row in (0, 6):
        np.testing.assert_array_equal(
            _run(op, gate[row : row + 1], up[row : row + 1])[0], together[row : row + 1]
        )
