"""The selective state space of Mamba-2, with a state for each sequence."""

from __future__ import annotations

import math
from collections.abc import Iterator

from llmd.api import SlottedOp
from llmd.api.state_ops import StateSpace
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.ops.state_rows import StateRows, state_args, state_launches
from llmd_backend_cuda.runtime import Launch


def state_space_launches(
    context: Context, slotted: SlottedOp, rows: int, states: States, scratch: StateRows
) -> Iterator[Launch]:
    """Yield the launches that convolve rows, then change states by them."""
    op = slotted.op
    assert isinstance(op, StateSpace)
    *vectors, skips, c_shift, b_shift, x_shift = (context.vector(index) for index in slotted.weights)
    args = state_args(context, slotted, states, scratch, vectors)
    args.skips, args.shifts = skips, (c_shift, b_shift, x_shift)
    args.least_time = op.least_time
    args.most_time = math.inf if op.most_time is None else op.most_time
    yield from state_launches(context, "state_space", args, op.sizes, rows)
