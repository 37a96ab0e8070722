"""Attention of encoders: to every row of the sequence in the step."""

from __future__ import annotations

from llmd.api.ops import EncoderAttention
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word

_THREADS = 64


def encoder_attention(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of an encoder's attention."""
    op = slotted.op
    assert isinstance(op, EncoderAttention)
    q, k, v = (context.slots[slot] for slot in slotted.inputs)
    out = slotted.outputs[0]
    shader = Shader("encoder_attention", (0, 1, -(-op.head_dim // _THREADS), 0))
    constants = (
        context.counts, q, k, v, context.slots[out], context.stride(out), context.place("sequences"),
        context.place("row_offsets"), op.head_dim, float_word(op.scale),
    )  # fmt: skip
    work = float(context.rows) * context.rows * op.heads * op.head_dim * 2
    return Dispatch(shader, (context.work,), constants, (op.heads, context.rows, 1), work)
