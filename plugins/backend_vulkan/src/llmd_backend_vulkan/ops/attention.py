"""Store keys and values, and attend to them.

The positions that a row sees are cut into spans (``shaders/attention_spans.glsl``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from llmd.api.latent_ops import Indexer
from llmd.api.ops import Attention, Rope
from llmd.api.program import Instruction, Program, SlottedOp
from llmd_backend_vulkan.buckets import bucket_of
from llmd_backend_vulkan.commands import MOST_WORK, Dispatch, Shader
from llmd_backend_vulkan.context import NONE, Context, float_word
from llmd_backend_vulkan.kv_memory import KV_CODES, KVPool
from llmd_backend_vulkan.ops.rope import rope
from llmd_backend_vulkan.step_memory import rope_name, seen_name, table_name

MOST_SPANS = 16
"""Most spans of a row."""

SPLIT_ROWS = 16
"""Most rows of a step whose spans are computed in work groups of their own."""

_SHORTEST_SPAN = 128
SPANS = "spans of attention"
"""Sums of spans, in the scratch memory."""

_THREADS = 64
_MOST_HEADS = 4
"""Query heads of a work group."""
_MOST_QUERIES = 16
"""Query heads times rows of a work group."""
_QUERY_ELEMENTS = 2048
"""Elements of all queries of a work group: with scores, what fits in 16 KiB."""


def attention(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of an attention op: store, attend, and add the spans if they are computed apart.

    An op without keys attends to those that another op has stored.
    """
    stored = [[_store(context, slotted, None)]] if has_keys(slotted) else []
    return [*stored, *_attending(context, slotted)]


def rotated_attention(context: Context, instruction: Instruction) -> list[list[Dispatch]]:
    """Return the phases of the pattern ``("rope", "rope", "attention")``.

    If one rope turns the queries and the other the keys, and nothing else reads the turned keys, these are
    turned where they are stored.
    """
    *ropes, attending = instruction.ops
    if not has_keys(attending):
        return [*([rope(context, one)] for one in ropes), *attention(context, attending)]
    q, k, v = attending.inputs[:3]
    of_q = [one for one in ropes if one.outputs[0] == q]
    of_k = [one for one in ropes if one.outputs[0] == k]
    is_plain = len(of_q) == len(of_k) == 1 and k not in instruction.outputs
    if not is_plain or {one.outputs[0] for one in ropes} & {v, *(one.inputs[0] for one in ropes)}:
        turned = [[rope(context, one)] for one in ropes]
        return [*turned, *attention(context, attending)]
    begin = [rope(context, of_q[0]), _store(context, attending, of_k[0])]
    return [begin, *_attending(context, attending)]


def has_keys(slotted: SlottedOp) -> bool:
    """Return whether an attention op stores keys and values of its own."""
    op = slotted.op
    assert isinstance(op, Attention)
    return op.k is not None


def _attending(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    op = slotted.op
    assert isinstance(op, Attention)
    phases = [list(_attend(context, op, slotted))]
    return [*phases, [_merge(context, op, slotted)]] if context.spans else phases


def spans_of(positions: NDArray[np.int32], window: int | None) -> NDArray[np.int64]:
    """Return how many spans rows see up to some positions; -1: none."""
    seen = positions.astype(np.int64) + 1
    if window is not None:
        seen = np.minimum(seen, window)
    size = np.full_like(seen, _SHORTEST_SPAN)
    while np.any(short := size * MOST_SPANS < seen):
        size[short] *= 2
    return -(-seen // size)


def scratch_words(program: Program, rows: int) -> int:
    """Return the words that the sums of spans take in steps of at most ``rows`` rows."""
    ops = (slotted.op for slotted in program.ops)
    widths = [op.heads * (op.value_dim + 2) for op in ops if isinstance(op, Attention)]
    spans = bucket_of(min(-(-program.context_len // _SHORTEST_SPAN), MOST_SPANS), MOST_SPANS)
    return min(rows, SPLIT_ROWS) * spans * max(widths, default=0) if spans > 1 else 0


def _store(context: Context, slotted: SlottedOp, turning: SlottedOp | None) -> Dispatch:
    op = slotted.op
    assert isinstance(op, Attention)
    _, k, v = slotted.inputs[:3]
    return store(context, slotted, k, v, op.kv_heads, op.head_dim, turning)


def store(
    context: Context,
    slotted: SlottedOp,
    k: int,
    v: int,
    kv_heads: int,
    head_dim: int,
    turning: SlottedOp | None,
) -> Dispatch:
    """Return the dispatch that stores the keys and values in the slots ``k`` and ``v``.

    ``turning`` is the rope that turns the keys before.
    """
    assert isinstance(slotted.op, Attention | Indexer)
    assert slotted.kv_layer is not None
    group = slotted.op.group
    pool = context.pools[group]
    region, token_stride = pool.layers[slotted.kv_layer], pool.group.stride
    rotated, pairs, rotations = 0, 0, 0
    if turning is not None:
        of_keys = turning.op
        assert isinstance(of_keys, Rope)
        assert turning.rope is not None
        k, rotated = turning.inputs[0], 1 + int(of_keys.interleaved)
        pairs, rotations = len(of_keys.table.inv_freq), context.place(rope_name(turning.rope, of_keys.stride))
    constants = (
        context.counts, context.slots[k], context.slots[v], context.stride(k), context.place("positions"),
        context.place("sequences"), context.place(table_name(group)), region.at, pool.block_words, kv_heads, head_dim, pairs, rotations,
        token_stride, pool.vector_bits,
    )  # fmt: skip
    shader = Shader("store_kv", (KV_CODES[pool.kv_dtype], rotated))
    groups = (_kinds(pool) * kv_heads, context.rows, 1)
    return Dispatch(shader, (context.work, region.buffer), constants, groups)


def _attend(context: Context, op: Attention, slotted: SlottedOp) -> Iterator[Dispatch]:
    """Yield dispatches, each for as many rows as a submission has time for if the context is full."""
    assert slotted.kv_layer is not None
    pool = context.pools[op.group]
    region = pool.layers[slotted.kv_layer]
    q, out = slotted.inputs[0], slotted.outputs[0]
    ratio = op.heads // op.kv_heads
    heads = min(ratio, _MOST_HEADS)
    own = (KV_CODES[pool.kv_dtype], heads, -(-op.head_dim // _THREADS), int(op.softcap is not None))
    sinks, sink_at = context.vector(slotted.weights[0])
    has_sinks = int(op.sinks is not None)
    constants = (
        context.counts, context.slots[q], context.stride(q), context.slots[out], context.stride(out),
        context.place(seen_name(pool.group.stride)), context.place("sequences"), context.place(table_name(op.group)),
        region.at, pool.block_words, op.kv_heads, op.head_dim, ratio,
        pool.group.window or 0, context.scratch[SPANS], context.spans, float_word(op.scale), float_word(op.softcap or 0.0),
    )  # fmt: skip
    is_plain = not pool.group.window and op.chosen is None
    has_tiles = not context.spans and context.rows > SPLIT_ROWS and is_plain
    shared = shared_rows(op) if has_tiles else 0
    shader = Shader(
        "attention", (*own, int(context.spans == 0), shared, has_sinks, int(op.chosen is not None))
    )
    chosen = chosen_words(context, slotted)
    seen = max(1, min(context.program.context_len // pool.group.stride, chosen[2]))
    of_row = float(seen) * op.heads * op.head_dim * 2
    step = max(1, int(MOST_WORK / of_row))
    if shared:
        step = -(-step // shared) * shared
    for first in range(0, context.rows, step):
        rows = min(step, context.rows - first)
        x = op.kv_heads * -(-ratio // heads)
        buffers, words = (
            (context.work, region.buffer, sinks),
            (
                *constants,
                first,
                sink_at,
                op.value_dim,
                _kinds(pool) - 1,
                pool.vector_bits,
                *_sums(context, slotted),
            ),
        )
        groups = (x, rows, context.spans or 1)
        yield Dispatch(shader, buffers, (*words, *chosen), groups, rows * of_row)
        if shared:
            of_rows = Shader("attention_rows", (*own, shared, has_sinks))
            yield Dispatch(of_rows, buffers, words, (x, -(-rows // shared), 1))


def chosen_words(context: Context, slotted: SlottedOp) -> tuple[int, int, int]:
    """Return where the lists of chosen positions of an attention op are, their stride, and their length.

    Without them, the length is more than a row ever sees.
    """
    op = slotted.op
    assert isinstance(op, Attention)
    if op.chosen is None:
        return NONE, 0, NONE
    slot = slotted.inputs[-1]
    return context.slots[slot], context.stride(slot), context.program.slot_widths[slot]


def _sums(context: Context, slotted: SlottedOp) -> tuple[int, int]:
    """Return where the logarithms of the sums of an attention op are written, and their stride."""
    if len(slotted.outputs) == 1:
        return NONE, 0
    slot = slotted.outputs[1]
    return context.slots[slot], context.stride(slot)


def _kinds(pool: KVPool) -> int:
    """Return how many vectors of a head are stored for a position: latent vectors are keys and values."""
    return 1 if pool.group.kind == "latent" else 2


def shared_rows(op: Attention) -> int:
    """Return how many rows of a sequence a work group computes, of a step with many; 0: it has one row."""
    width = -(-op.head_dim // _THREADS) * _THREADS
    queries = min(_MOST_QUERIES, _QUERY_ELEMENTS // width)
    return queries // min(op.heads // op.kv_heads, _MOST_HEADS)


def _merge(context: Context, op: Attention, slotted: SlottedOp) -> Dispatch:
    out, pool = slotted.outputs[0], context.pools[op.group]
    sinks, sink_at = context.vector(slotted.weights[0])
    constants = (
        context.counts, context.slots[out], context.stride(out), context.place(seen_name(pool.group.stride)),
        op.value_dim, pool.group.window or 0, context.scratch[SPANS], context.spans, sink_at,
        chosen_words(context, slotted)[2], *_sums(context, slotted),
    )  # fmt: skip
    shader = Shader("attention_merge", (KV_CODES[pool.kv_dtype], int(op.sinks is not None)))
    return Dispatch(shader, (context.work, sinks), constants, (op.heads, context.rows, 1))
