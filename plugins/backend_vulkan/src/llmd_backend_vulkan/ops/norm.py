"""Norms of rows, or of equal pieces of rows."""

from __future__ import annotations

from llmd.api.ops import Norm
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word


def norm(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a norm."""
    op = slotted.op
    assert isinstance(op, Norm)
    x, out = slotted.inputs[0], slotted.outputs[0]
    gain, bias = slotted.weights
    shader = Shader("norm", (int(op.method == "layer"), int(gain is not None), int(bias is not None)))
    (gains, gain_at), (biases, bias_at) = context.vector(gain), context.vector(bias)
    width = context.program.slot_widths[x] // op.heads
    constants = (
        context.counts, context.slots[x], context.stride(x), context.slots[out], context.stride(out),
        width, gain_at, bias_at, width if op.own_weights else 0, float_word(op.eps), float_word(op.offset),
    )  # fmt: skip
    return Dispatch(shader, (context.work, gains, biases), constants, (op.heads, context.rows, 1))
