"""Vectors that stand for several tokens: keep what they are made of, then make them."""

from __future__ import annotations

from llmd.api import Compress, SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.kv_memory import KV_CODES, KVPool
from llmd_backend_vulkan.step_memory import table_name

_THREADS = 64
_WORDS = 256
"""Words that a work group keeps."""


def compress(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of a compress: keep, then make vectors."""
    op = slotted.op
    assert isinstance(op, Compress)
    pool = context.pools[op.group]
    return [[_keep(context, slotted, pool)], [_make(context, slotted, op, pool)]]


def _keep(context: Context, slotted: SlottedOp, pool: KVPool) -> Dispatch:
    assert slotted.kv_layer is not None
    region, (x, gate) = pool.layers[slotted.kv_layer], slotted.inputs
    constants = (
        context.counts, context.slots[x], context.slots[gate], context.stride(x), context.place("positions"),
        context.place("sequences"), context.place(table_name(pool.group.id)), region.at, pool.block_words,
        pool.group.key_dim // 2,
    )  # fmt: skip
    words = pool.block_words // pool.group.block_vectors
    shader = Shader("keep_parts", (KV_CODES[pool.kv_dtype],))
    return Dispatch(shader, (context.work, region.buffer), constants, (-(-words // _WORDS), context.rows, 1))


def _make(context: Context, slotted: SlottedOp, op: Compress, pool: KVPool) -> Dispatch:
    assert slotted.kv_layer is not None
    region, out = pool.layers[slotted.kv_layer], slotted.outputs[0]
    biases, bias_at = context.vector(slotted.weights[0])
    constants = (
        context.counts, context.place("positions"), context.place("sequences"), context.place(table_name(op.group)),
        region.at, pool.block_words, pool.group.key_dim, context.slots[out], context.stride(out), bias_at,
        op.dim, op.stride, op.span,
    )  # fmt: skip
    shader = Shader("compress", (KV_CODES[pool.kv_dtype],))
    groups = (-(-op.dim // _THREADS), context.rows, 1)
    return Dispatch(shader, (context.work, region.buffer, biases), constants, groups)
