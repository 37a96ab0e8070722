"""Attention to two sets of positions."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import MergeAttention
from llmd.api.step import Float32
from llmd_backend_cuda.ops.merge_attention import launch_merge_attention
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows
from tests.cuda.simulated import NEEDS_COMPILER

pytestmark = NEEDS_COMPILER

ROWS = 5


def run(heads: int, dim: int, sums: tuple[Float32, Float32], rows: slice) -> tuple[Float32, Float32]:
    """Return what the kernel makes of some rows, and what the reference makes."""
    width = heads * dim
    values = (random_rows(ROWS, width, 1), sums[0], random_rows(ROWS, width, 2), sums[1])
    slots = {slot: value[rows] for slot, value in enumerate(values)}
    op = MergeAttention("a", "a_sums", "b", "b_sums", "out", heads)
    one = OneInstruction(one_op(op, 4), (width, heads, width, heads, width))
    step = make_step((len(slots[0]),))
    device = OnDevice(one, step, slots)
    launch = launch_merge_attention(device.context, one.instruction.ops[0], device.rows)
    return device.run(launch, 4)[0], one.reference(step, slots)[4]


@pytest.mark.parametrize(("heads", "dim"), [(4, 16), (3, 13), (1, 512)])
def test_results_are_those_of_the_reference(heads: int, dim: int) -> None:
    sums = (random_rows(ROWS, heads, 3, 4.0), random_rows(ROWS, heads, 4, 4.0))
    sums[1][0] = -np.inf
    sums[0][1] = -np.inf
    sums[0][2] += 500
    found, expected = run(heads, dim, sums, slice(None))
    assert nmse(found, expected) < 1e-12
    np.testing.assert_array_equal(found[0], random_rows(ROWS, heads * dim, 1)[0])
    np.testing.assert_array_equal(run(heads, dim, sums, slice(3, 4))[0], found[3:4])
