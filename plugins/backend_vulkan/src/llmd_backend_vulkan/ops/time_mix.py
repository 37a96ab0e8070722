"""The ops of RWKV-7, which keep parts of one state of a layer for each sequence."""

from __future__ import annotations

from llmd.api.program import SlottedOp
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift
from llmd_backend_vulkan.commands import Buffer, Dispatch, Shader
from llmd_backend_vulkan.context import Context, stride_of
from llmd_backend_vulkan.ops.states import COLUMNS, DECAYS, MIXED, PARTS, THREADS
from llmd_backend_vulkan.step_memory import table_name


def token_shift(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: mix rows, each way in a dispatch of its own, then keep the last row."""
    op = slotted.op
    assert isinstance(op, TokenShift)
    (x,), width = slotted.inputs, op.state_elements
    states, slots = _states(context, slotted, op)
    mixes = []
    for out, weight in zip(slotted.outputs, slotted.weights, strict=True):
        shares, share_at = context.vector(weight)
        counts, *others = slots
        constants = (
            counts, context.place("sequences"), *others, context.slots[x], context.stride(x),
            context.slots[out], context.stride(out), width, share_at,
        )  # fmt: skip
        groups = (-(-width // THREADS), context.rows, 1)
        mixes.append(Dispatch(Shader("token_shift"), (context.work, shares, states), constants, groups))
    rows = (*(context.slots[x],) * 3, context.stride(x), context.stride(x))
    kept = (*slots, *rows, width, width, 2)  # a convolution over two rows would keep one
    groups = (-(-width // THREADS), _sequences(context), 1)
    return [mixes, [Dispatch(Shader("state_keep"), (context.work, states), kept, groups)]]


def generalized_delta(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: turn rows into what changes states, then change states by them."""
    op = slotted.op
    assert isinstance(op, GeneralizedDelta)
    inputs = [context.slots[slot] for slot in slotted.inputs]
    out, bonus = (context.slots[slot] for slot in slotted.outputs)
    stride = context.stride(slotted.inputs[0])
    rows = (context.scratch[MIXED], stride_of(op.sizes.width), context.scratch[DECAYS])
    vectors = [context.vector(index) for index in slotted.weights]
    constants = (context.counts, *inputs, stride, *rows, bonus, *(at for _, at in vectors), op.head_dim)
    buffers = (context.work, *(buffer for buffer, _ in vectors))
    prepare = Dispatch(Shader("generalized_delta_rows"), buffers, constants, (op.heads, context.rows, 1))
    states, slots = _states(context, slotted, op)
    constants = (*slots, *rows, inputs[0], inputs[2], out, stride, op.head_dim)
    groups = (-(-op.head_dim // COLUMNS), op.heads, _sequences(context))
    shader = Shader("generalized_delta_run", (-(-op.head_dim // PARTS),))
    work = float(context.rows) * op.state_elements * 4
    return [[prepare], [Dispatch(shader, (context.work, states), constants, groups, work)]]


def _states(
    context: Context, slotted: SlottedOp, op: TokenShift | GeneralizedDelta
) -> tuple[Buffer, tuple[int, ...]]:
    """Return the buffer of states, and the constants that say where those of the op are."""
    assert slotted.kv_layer is not None
    pool, table = context.pools[op.group], context.place(table_name(op.group))
    states = pool.layers[slotted.kv_layer]
    slots = (context.counts, context.place("row_offsets"), table, states.at + op.offset, pool.block_words)
    return states.buffer, slots


def _sequences(context: Context) -> int:
    return min(context.rows, context.limits.max_sequences)
