"""The positions that attention is limited to: store index keys, score positions, choose the best ones."""

from __future__ import annotations

from llmd.api import Indexer, Program, SlottedOp, StageLimits
from llmd_backend_vulkan.commands import MOST_WORK, Dispatch, Shader
from llmd_backend_vulkan.context import Context
from llmd_backend_vulkan.kv_memory import KV_CODES
from llmd_backend_vulkan.ops.attention import store
from llmd_backend_vulkan.step_memory import seen_name, table_name

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
    most = most_vectors(context.program, op)
    step = min(_rows_at_once(most, context.limits.max_rows), max(1, int(MOST_WORK / _work(op, most))))
    for first in range(0, context.rows, step):
        rows = min(step, context.rows - first)
        if most > op.top_k:
            phases.append([_score(context, slotted, op, first, rows)])
        phases.append([_choose(context, slotted, op, first, rows)])
    return phases


def indexer_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the indexers of a program need, by name."""
    ops = (slotted.op for slotted in program.ops)
    counts = [most_vectors(program, op) for op in ops if isinstance(op, Indexer)]
    words = [_rows_at_once(most, limits.max_rows) * _stride(most) for most in counts]
    return {SCORES: max(words, default=0)}


def most_vectors(program: Program, op: Indexer) -> int:
    """Return how many vectors a row chooses from if the context is full."""
    return program.context_len // program.groups[op.group].stride


def _score(context: Context, slotted: SlottedOp, op: Indexer, first: int, rows: int) -> Dispatch:
    assert slotted.kv_layer is not None
    pool = context.pools[op.group]
    region, (q, _, weights) = pool.layers[slotted.kv_layer], slotted.inputs
    most = most_vectors(context.program, op)
    stride = _stride(most)
    constants = (
        context.counts, context.slots[q], context.stride(q), context.slots[weights], context.stride(weights),
        _seen(context, op), context.place("sequences"), context.place(table_name(op.group)),
        region.at, pool.block_words, 1, op.head_dim, 0, pool.vector_bits, op.heads, first, op.top_k,
        context.scratch[SCORES], stride,
    )  # fmt: skip
    shader = Shader("index_scores", (KV_CODES[pool.kv_dtype], -(-op.head_dim // _THREADS)))
    groups = (max(1, min(stride // _THREADS, _MOST_GROUPS // rows)), rows, 1)
    work = rows * _work(op, most)
    return Dispatch(shader, (context.work, region.buffer), constants, groups, work)


def _choose(context: Context, slotted: SlottedOp, op: Indexer, first: int, rows: int) -> Dispatch:
    out = slotted.outputs[0]
    constants = (
        context.counts, _seen(context, op), context.scratch[SCORES], _stride(most_vectors(context.program, op)),
        context.slots[out], context.stride(out), first, op.top_k,
    )  # fmt: skip
    return Dispatch(Shader("choose_positions"), (context.work,), constants, (rows, 1, 1))


def _seen(context: Context, op: Indexer) -> int:
    """Return where the last positions that rows see are."""
    return context.place(seen_name(context.program.groups[op.group].stride))


def _work(op: Indexer, most: int) -> float:
    """Return the multiply-adds of a row that sees ``most`` vectors."""
    return float(max(1, most)) * op.heads * op.head_dim


def _stride(most: int) -> int:
    """Return the words of the scores of a row."""
    return max(1, -(-most // _THREADS)) * _THREADS


def _rows_at_once(most: int, max_rows: int) -> int:
    return max(1, min(max_rows, _SCRATCH_WORDS // _stride(most)))
