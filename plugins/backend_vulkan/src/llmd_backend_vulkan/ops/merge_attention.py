"""Attention to two sets of positions."""

from __future__ import annotations

from llmd.api import MergeAttention, SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context


def merge_attention(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch that merges two results of attention."""
    op = slotted.op
    assert isinstance(op, MergeAttention)
    (a, a_sums, b, b_sums), out = slotted.inputs, slotted.outputs[0]
    constants = (
        context.counts, context.slots[a], context.slots[b], context.stride(a), context.slots[a_sums],
        context.slots[b_sums], context.stride(a_sums), context.slots[out],
        context.program.slot_widths[out] // op.heads,
    )  # fmt: skip
    return Dispatch(Shader("merge_attention"), (context.work,), constants, (op.heads, context.rows, 1))
