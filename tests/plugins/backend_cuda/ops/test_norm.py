"""Norms of rows and heads, alone and with an add before them."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.ops import Add, Norm
from llmd.api.program import Instruction, SlottedOp
from llmd.api.step import Float32
from llmd_backend_cuda.ops.norm import MAX_WIDTH, launch_norm, launch_norm_add
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows

BOUND = 1e-12
"""Two orders of magnitude below that of the conformance suite, so that no sum is left out."""
WIDTHS = (1, 5, 48, 130, 513, 768, 2050, 4096, 5120, 16384)
Method = Literal["rms", "layer"]


def _norm(width: int, method: Method, *, heads: int = 1, offset: float = 0.0, weight: bool = True) -> Norm:
    vector = TensorRef("v", (width,))
    bias = vector if method == "layer" else None
    return Norm("x", "out", vector if weight else None, 1e-5, method, offset, heads, bias)


def _vectors(width: int) -> tuple[Float32, Float32]:
    return random_rows(1, width, 7)[0], random_rows(1, width, 8)[0]


def _one_norm(width: int, op: Norm) -> OneInstruction:
    weights = (None if op.weight is None else 0, None if op.bias is None else 1)
    total = width * op.heads
    return OneInstruction(
        one_op(op, 1, weights), (total, total), _vectors(total if op.own_weights else width)
    )


def _run(one: OneInstruction, x: Float32, *, order: str | int = 1) -> Float32:
    device = OnDevice(one, make_step((len(x),)), {0: x}, order=order)
    launch = launch_norm(device.context, one.instruction.ops[0], device.rows)
    (found,) = device.run(launch, 1)
    return found


@pytest.mark.parametrize("method", ["rms", "layer"])
@pytest.mark.parametrize("width", WIDTHS)
def test_rows(width: int, method: Method) -> None:
    one = _one_norm(width, _norm(width, method))
    x = random_rows(2, width)
    expected = one.reference(make_step((2,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


@pytest.mark.parametrize("method", ["rms", "layer"])
@pytest.mark.parametrize(("width", "heads"), [(12, 4), (128, 5), (130, 3), (256, 2), (1024, 2)])
def test_heads(width: int, heads: int, method: Method) -> None:
    one = _one_norm(width, _norm(width, method, heads=heads))
    x = random_rows(3, width * heads)
    expected = one.reference(make_step((3,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


@pytest.mark.parametrize("method", ["rms", "layer"])
@pytest.mark.parametrize(("width", "heads"), [(12, 5), (130, 3), (1024, 2)])
def test_slices_with_weights_of_their_own(width: int, heads: int, method: Method) -> None:
    op = msgspec.structs.replace(_norm(width, method, heads=heads, offset=1.0), own_weights=True)
    one = _one_norm(width, op)
    x = random_rows(3, width * heads)
    expected = one.reference(make_step((3,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


@pytest.mark.parametrize("weight", [True, False])
def test_offset_and_missing_weight(weight: bool) -> None:  # noqa: FBT001
    one = _one_norm(48, _norm(48, "rms", offset=1.0, weight=weight))
    x = random_rows(5, 48)
    expected = one.reference(make_step((5,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


def test_layer_norm_of_rows_far_from_zero() -> None:
    one = _one_norm(4096, _norm(4096, "layer", weight=False))
    x = random_rows(2, 4096) + np.float32(1000)
    expected = one.reference(make_step((2,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


def test_small_values_count_beside_a_large_one() -> None:
    one = _one_norm(4096, _norm(4096, "rms", weight=False))
    x = random_rows(2, 4096)
    x[:, 17] = 200.0
    expected = one.reference(make_step((2,)), {0: x})[1]
    assert nmse(_run(one, x), expected) < BOUND


@pytest.mark.parametrize(("width", "heads"), [(130, 1), (768, 1), (4096, 1), (128, 3)])
def test_a_row_has_the_same_bits_alone_and_in_any_order(width: int, heads: int) -> None:
    one = _one_norm(width, _norm(width, "layer", heads=heads))
    x = random_rows(5, width * heads)
    together = _run(one, x)
    np.testing.assert_array_equal(_run(one, x[3:4]), together[3:4])
    np.testing.assert_array_equal(_run(one, x[2:5], order="reverse"), together[2:5])


@pytest.mark.parametrize("method", ["rms", "layer"])
@pytest.mark.parametrize(("width", "heads"), [(5, 1), (48, 4), (4096, 1)])
def test_norm_and_add(width: int, heads: int, method: Method) -> None:
    piece = width // heads
    op = _norm(piece, method, heads=heads, offset=1.0)
    norm = SlottedOp(op, (0,), (2,), (0, None if op.bias is None else 1))
    add = SlottedOp(Add("a", "x", "b", scale=0.3), (1, 2), (3,))
    one = OneInstruction(Instruction((norm, add), 0, (3,)), (width,) * 4, _vectors(piece))
    values = {0: random_rows(3, width, 1), 1: random_rows(3, width, 2)}
    step = make_step((3,))
    device = OnDevice(one, step, values)
    (found,) = device.run(launch_norm_add(device.context, one.instruction, device.rows), 3)
    assert nmse(found, one.reference(step, values)[3]) < BOUND
    assert np.isnan(device.read(2)).all(), "the norm is not written"


def test_a_slice_that_is_too_wide_is_refused() -> None:
    width = MAX_WIDTH + 1
    one = _one_norm(width, _norm(width, "rms"))
    with pytest.raises(ValueError, match="wider"):
        _run(one, random_rows(1, width))
