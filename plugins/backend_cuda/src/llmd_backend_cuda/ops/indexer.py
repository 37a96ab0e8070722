"""The positions that attention is limited to: store index keys, score positions, choose the best ones."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import msgspec

from llmd.api import BLOCK_LEN, Indexer, Program, SlottedOp, StageLimits
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.kv_memory import INDEX_READ_CODES, KVMemory, KVMemoryArgs, padded_dim
from llmd_backend_cuda.ops.attention import StoreArgs, store_launch
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

MAX_INDEX_DIM = 256
"""Most elements of an index key: a warp has the keys of a block in registers."""
MAX_QUERY = 10240
"""Most elements of the index queries of a row, with padding: they are in shared memory, 4 bytes each."""

_HEAD_TILE = 16
_WARPS = 4
_CHOOSERS = 1024
_TURNS = 8
"""Blocks of ``score_positions`` for each multiprocessor, if there are enough positions."""
_SCRATCH_BYTES = 64 << 20
"""Most memory for scores, unless one row needs more."""


class IndexerArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/indexer.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("memory", KVMemoryArgs),
        ("q", ctypes.c_void_p),
        ("head_weights", ctypes.c_void_p),
        ("scores", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("first_row", ctypes.c_int32),
        ("top_k", ctypes.c_int32),
        ("score_stride", ctypes.c_int32),
    )


class IndexerMemory(msgspec.Struct, frozen=True):
    """What an indexer reads and writes besides slots."""

    kv: KVMemory
    """Of index keys."""
    block_table: int
    """Address of the description of the group's block table (`StepMemory.table`)."""
    scores: Memory
    """Float32 ``[rows that are scored at once, score_stride]``; `score_bytes` of them."""


def index_groups(program: Program) -> set[int]:
    """Return the KV groups that keep index keys."""
    return {op.group for op in (slotted.op for slotted in program.ops) if isinstance(op, Indexer)}


def score_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of the scores of some rows; 0 if a program has no indexer."""
    lengths = [program.context_len // program.groups[group].stride for group in index_groups(program)]
    return max(
        (4 * _rows_at_once(length, limits.max_rows) * _score_stride(length) for length in lengths), default=0
    )


def allocate_scores(runtime: Runtime, program: Program, limits: StageLimits) -> Memory:
    """Take the memory of `score_bytes`.

    Raises:
        MemoryBudgetError: there is not enough.
    """
    return runtime.allocate(score_bytes(program, limits))


def query_elements(op: Indexer) -> int:
    """Return the elements of the index queries of a row, with padding."""
    return -(-op.heads // _HEAD_TILE) * _HEAD_TILE * padded_dim(op.head_dim)


def indexer_launches(
    context: Context, slotted: SlottedOp, rows: int, memory: IndexerMemory
) -> Iterator[Launch]:
    """Yield the launches for steps of at most ``rows`` rows: store index keys, then, for some rows at a time,
    score positions and choose.
    """
    op = slotted.op
    assert isinstance(op, Indexer)
    assert slotted.kv_layer is not None
    q, k, head_weights = map(context.slot, slotted.inputs)
    kv = memory.kv.args(slotted.kv_layer, memory.block_table)
    yield store_launch(context, memory.kv, StoreArgs(context.step, kv, k=k), rows)
    length = context.program.context_len // memory.kv.group.stride
    at_once = min(rows, _rows_at_once(length, context.limits.max_rows))
    score, choose = (context.runtime.kernel(_spec(name, op, memory.kv)) for name in _KERNELS)
    for first in range(0, rows, at_once):
        args = IndexerArgs(
            context.step,
            kv,
            q,
            head_weights,
            memory.scores.pointer,
            context.slot(slotted.outputs[0]),
            first,
            op.top_k,
            _score_stride(length),
        )
        count = min(at_once, rows - first)
        if length > op.top_k:
            yield Launch(score, (_blocks(context, length, count), count, 1), 32 * _WARPS, args, overlaps=True)
        yield Launch(choose, (count, 1, 1), _CHOOSERS, args, overlaps=True)


_KERNELS = ("score_positions", "choose_positions")


def _spec(name: str, op: Indexer, kv: KVMemory) -> KernelSpec:
    return KernelSpec.of("indexer", name, kv.defines(INDEX_READ_CODES) | {"HEADS": op.heads})


def _score_stride(length: int) -> int:
    """Return the elements of the scores of a row that sees at most ``length`` keys: a multiple of 16."""
    return max(1, -(-length // BLOCK_LEN)) * BLOCK_LEN


def _rows_at_once(length: int, max_rows: int) -> int:
    return max(1, min(max_rows, _SCRATCH_BYTES // (4 * _score_stride(length))))


def _blocks(context: Context, length: int, rows: int) -> int:
    """Return how many blocks share the keys of each of some rows."""
    needed = -(-_score_stride(length) // (BLOCK_LEN * _WARPS))
    return max(1, min(needed, -(-_TURNS * context.runtime.num_processors // rows)))
