"""Linear attention with the gated delta rule, with a state for each sequence."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import SlottedOp
from llmd.api.state_ops import GatedDelta
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.ops.state_rows import StateRows, state_args, state_launches
from llmd_backend_cuda.runtime import Launch


def gated_delta_launches(
    context: Context, slotted: SlottedOp, rows: int, states: States, scratch: StateRows
) -> Iterator[Launch]:
    """Yield the launches that convolve rows, then change states by them."""
    op = slotted.op
    assert isinstance(op, GatedDelta)
    vectors = [context.vector(index) for index in slotted.weights]
    args = state_args(context, slotted, states, scratch, vectors)
    args.beta, args.is_tiled = context.slot(slotted.inputs[4]), op.tiled
    yield from state_launches(context, "gated_delta", args, op.sizes, rows, by_element=op.decays_elements)
