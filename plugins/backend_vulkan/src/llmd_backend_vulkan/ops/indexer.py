"""The positions that attention is limited to: store index keys, score positions, choose the best ones."""

from __future__ import annotations

from llmd.api import Indexer, Program, SlottedOp, StageLimits
from llmd_backend_vulkan.commands import MOST_WORK, Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.kv_memory import KV_CODES
from llmd_backend_vulkan.ops.attention import store
from llmd_backend_vulkan.step_memory import table_name

MAX_INDEX_DIM = 256
"""Most elements of an index key: eight heads of queries are in shared memory."""

SCORES = "index scores"
"""Float32 ``[rows that are scored at once][stride]`` in the scratch memory."""

_THREADS = 64
_MOST_GROUPS = 4096
"""Work groups of a dispatch, if rows see enough positions."""
_SCRATCH_WORDS = 8 << 20
"""Most words of scores, unless one row needs more."""


def indexer(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of an indexer: store, then, for some rows at a time, score and choose."""
    op = slotted.op
    assert isinstance(op, Indexer)
    phases = [[store(context, slotted, slotted.inputs[1], slotted.inputs[1], 1, op.head_dim, None)]]
    context_len = context.program.context_len
    step = min(
        _rows_at_once(context_len, context.limits.max_rows), max(1, int(MOST_WORK / _work(op, context_len)))
    )
    for first in range(0, context.rows, step):
        rows = min(step, context.rows - first)
        if context_len > op.top_k:
            phases.append([_score(context, slotted, op, first, rows)])
        phases.append([_choose(context, slotted, op, first, rows)])
    return phases


def indexer_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the indexers of a program need, by name."""
    if not any(isinstance(slotted.op, Indexer) for slotted in program.ops):
        return {SCORES: 0}
    return {SCORES: _rows_at_once(program.context_len, limits.max_rows) * _stride(program.context_len)}


def _score(context: Context, slotted: SlottedOp, op: Indexer, first: int, rows: int) -> Dispatch:
    assert slotted.kv_layer is not None
    pool = context.pools[op.group]
    region, (q, _, weights) = pool.layers[slotted.kv_layer], slotted.inputs
    stride = _stride(context.program.context_len)
    constants = (
        context.counts, context.slots[q], context.stride(q), context.slots[weights], context.stride(weights),
        context.place("positions"), context.place("sequences"), context.place(table_name(op.group)),
        region.at, pool.block_words, 1, op.head_dim, 0, op.heads, first, op.top_k, context.scratch[SCORES], stride,
    )  # fmt: skip
    shader = Shader("index_scores", (KV_CODES[pool.kv_dtype], -(-op.head_dim // _THREADS)))
    groups = (max(1, min(stride // _THREADS, _MOST_GROUPS // rows)), rows, 1)
    work = rows * _work(op, context.program.context_len)
    return Dispatch(shader, (context.work, region.buffer), constants, groups, work)


def _choose(context: Context, slotted: SlottedOp, op: Indexer, first: int, rows: int) -> Dispatch:
    out = slotted.outputs[0]
    constants = (
        context.counts, context.place("positions"), context.scratch[SCORES], _stride(context.program.context_len),
        context.slots[out], context.stride(out), first, op.top_k,
    )  # fmt: skip
    return Dispatch(Shader("choose_positions"), (context.work,), constants, (rows, 1, 1))


def _work(op: Indexer, context_len: int) -> float:
    """Return the multiply-adds of a row if the context is full."""
    return float(context_len) * op.heads * op.head_dim


def _stride(context_len: int) -> int:
    """Return the words of the scores of a row."""
    return -(-context_len // _THREADS) * _THREADS


def _rows_at_once(context_len: int, max_rows: int) -> int:
    return max(1, min(max_rows, _SCRATCH_WORDS // _stride(context_len)))
