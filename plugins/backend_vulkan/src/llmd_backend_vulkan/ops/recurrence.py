"""The recurrence that tests use."""

from __future__ import annotations

from llmd.api.ops import Recurrence
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.step_memory import table_name

_THREADS = 64


def recurrence(context: Context, slotted: SlottedOp) -> Dispatch:
    """Return the dispatch of a recurrence."""
    op = slotted.op
    assert isinstance(op, Recurrence)
    assert slotted.kv_layer is not None
    x, out = slotted.inputs[0], slotted.outputs[0]
    pool = context.pools[op.group]
    states = pool.layers[slotted.kv_layer]
    decays, decay_at = context.vector(slotted.weights[0])
    width = context.program.slot_widths[out]
    constants = (
        context.counts, context.slots[x], context.stride(x), context.slots[out], context.stride(out), width,
        context.place("row_offsets"), context.place(table_name(op.group)), decay_at, states.at, pool.block_words,
    )  # fmt: skip
    groups = (-(-width // _THREADS), min(context.rows, context.limits.max_sequences), 1)
    return Dispatch(Shader("recurrence"), (context.work, decays, states.buffer), constants, groups)
