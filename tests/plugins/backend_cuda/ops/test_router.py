"""The weights of experts against the reference."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.expert_ops import Router
from llmd.api.step import Float32
from llmd.models.plain_formats import from_float32, to_float32
from llmd_backend_cuda.ops.embed import Table, TableFormat
from llmd_backend_cuda.ops.router import router_launches
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, one_op, random_rows
from tests.cuda.simulated import NEEDS_COMPILER

pytestmark = NEEDS_COMPILER

EXPERTS = 70
"""More than two for each lane."""
SOFTMAX = Router("x", "r", TensorRef("w", (EXPERTS, 36)), 5)
SIGMOID = msgspec.structs.replace(
    SOFTMAX, score="sigmoid", scale=0.3, factor=2.5, groups=7, top_groups=2, group_score="sum_of_two"
)
ROOT = msgspec.structs.replace(SOFTMAX, score="sqrt_softplus", factor=1.5)
VECTORS = tuple(TensorRef(name, (EXPERTS,)) for name in ("bias", "correction", "gains"))


def _run(
    op: Router, x: Float32, weight: Float32, fmt: TableFormat = "f32", given: Float32 | None = None
) -> tuple[Float32, Float32]:
    """Return the weights of experts, and those of the reference; vectors are random if the op has them."""
    vectors = [random_rows(1, EXPERTS, seed)[0] for seed in (11, 12, 13)]
    has = (op.bias, op.correction, op.gains)
    indices = (0, *(None if ref is None else place + 1 for place, ref in enumerate(has)))
    stored = from_float32(weight, fmt)
    slots = {0: x} if given is None else {0: x, 1: given}
    out = len(slots)
    instruction = one_op(op, out, indices)
    widths = (*(value.shape[1] for value in slots.values()), EXPERTS)
    one = OneInstruction(instruction, widths, (to_float32(stored, fmt), *vectors))
    step = make_step((len(x),))
    device = OnDevice(one, step, slots)
    table = Table(device.keep(stored), fmt)
    products = device.runtime.allocate(4 * device.rows * EXPERTS)
    for launch in router_launches(device.context, instruction.ops[0], device.rows, table, products):
        device.runtime.launch(launch)
    return device.read(out), one.reference(step, slots)[out]


@pytest.mark.parametrize(("width", "fmt"), [(36, "f32"), (37, "bf16"), (300, "f16")])
@pytest.mark.parametrize("op", [SOFTMAX, SIGMOID, ROOT], ids=["softmax", "sigmoid", "sqrt_softplus"])
def test_the_weights_are_those_of_the_reference(op: Router, width: int, fmt: TableFormat) -> None:
    bias, correction, gains = VECTORS
    op = msgspec.structs.replace(op, bias=bias, correction=correction, gains=gains)
    op = msgspec.structs.replace(op, weight=TensorRef("w", (EXPERTS, width)))
    x, weight = random_rows(6, width, 1), random_rows(EXPERTS, width, 2, 0.3)
    found, expected = _run(op, x, weight, fmt)
    assert ((expected != 0).sum(axis=1) == op.top_k).all()
    np.testing.assert_array_equal(found != 0, expected != 0)
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    for row in (0, 5):
        np.testing.assert_array_equal(_run(op, x[row : row + 1], weight, fmt)[0], found[row : row + 1])


@pytest.mark.parametrize("normalized", [True, False])
def test_rows_use_the_experts_that_they_are_given(*, normalized: bool) -> None:
    """An expert that is given twice has twice the weight."""
    op = msgspec.structs.replace(ROOT, given="given", normalized=normalized)
    x, weight = random_rows(6, 36, 1), random_rows(EXPERTS, 36, 2)
    given = np.random.default_rng(3).integers(0, EXPERTS, (6, 5)).astype(np.float32)
    given[2] = 7, 69, 7, 0, 69
    found, expected = _run(op, x, weight, given=given)
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    assert np.flatnonzero(found[2]).tolist() == [0, 7, 69]
    for row in (0, 5):
        alone = _run(op, x[row : row + 1], weight, given=given[row : row + 1])[0]
        np.testing.assert_array_equal(alone, found[row : row + 1])


def test_of_equal_experts_the_first_are_used() -> None:
    found, expected = _run(SOFTMAX, random_rows(2, 36), np.zeros((EXPERTS, 36), np.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.flatnonzero(found[0]).tolist() == [0, 1, 2, 3, 4]


def test_rows_that_are_not_numbers_use_no_expert() -> None:
    x = random_rows(2, 36)
    x[0, 3] = np.nan
    found, expected = _run(SOFTMAX, x, random_rows(EXPERTS, 36, 2))
    assert not found[0].any()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
