"""Rotary embedding of positions."""

from __future__ import annotations

from llmd.api.ops import Rope
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.step_memory import rope_name

_THREADS = 64


def rope(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a rope."""
    op = slotted.op
    assert isinstance(op, Rope)
    assert slotted.rope is not None
    x, out = slotted.inputs[0], slotted.outputs[0]
    constants = (
        context.counts, context.slots[x], context.slots[out], context.stride(out), op.heads, op.head_dim,
        len(op.table.inv_freq), context.place(rope_name(slotted.rope, op.stride)),
    )  # fmt: skip
    groups = (-(-op.heads * op.head_dim // _THREADS), context.rows, 1)
    return Dispatch(Shader("rope", (int(op.interleaved),)), (context.work,), constants, groups)
