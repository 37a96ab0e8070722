"""Joins of the slices of two values."""

from __future__ import annotations

from llmd.api.latent_ops import Join
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context

_THREADS = 64


def join(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a join."""
    op = slotted.op
    assert isinstance(op, Join)
    slots = (*slotted.inputs, slotted.outputs[0])
    places = [place for slot in slots for place in (context.slots[slot], context.stride(slot))]
    a, b, width = (context.program.slot_widths[slot] for slot in slots)
    constants = (context.counts, *places, a // op.heads, b // op.heads, width)
    groups = (-(-width // _THREADS), context.rows, 1)
    return Dispatch(Shader("join"), (context.work,), constants, groups)
