"""Store keys and values, and attend to them; with or without the rotation of queries and keys."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import msgspec

from llmd.api.ops import Attention, Norm, Rope
from llmd.api.plan import KVGroup
from llmd.api.program import Instruction, Program, SlottedOp
from llmd_backend_cuda.attention_plan import SHORT_SPANS, AttentionScratch, AttentionShape
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.kv_memory import MAX_HEAD_DIM, READ_CODES, KVMemory, KVMemoryArgs
from llmd_backend_cuda.ops.norm import launch_norm
from llmd_backend_cuda.ops.rope import launch_rope
from llmd_backend_cuda.runtime import KernelSpec, Launch

_WARP = 32
_STORING_THREADS = 128
_HEADS_OF_BLOCK = 4
_BLOCKS_OF_PROCESSOR = 2
_NO_WINDOW = 1 << 30
_LEAST_SCALE = 1e-30


class RotationArgs(ctypes.Structure):
    """``struct Rotation`` of ``kernels/store_kv.cu``."""

    _fields_ = (
        ("inv_freq", ctypes.c_void_p),
        ("pairs", ctypes.c_int32),
        ("factor", ctypes.c_float),
        ("interleaved", ctypes.c_int32),
    )


class HeadNormArgs(ctypes.Structure):
    """``struct HeadNorm`` of ``kernels/store_kv.cu``."""

    _fields_ = (
        ("exists", ctypes.c_int32),
        ("eps", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("gain", ctypes.c_void_p),
    )


class StoreArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/store_kv.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("memory", KVMemoryArgs),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("q_out", ctypes.c_void_p),
        ("q_rotation", RotationArgs),
        ("k_rotation", RotationArgs),
        ("q_norm", HeadNormArgs),
        ("k_norm", HeadNormArgs),
        ("heads", ctypes.c_int32),
    )


class AttentionArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/attention.cu``."""

    _fields_ = (
        ("memory", KVMemoryArgs),
        ("plan", ctypes.c_void_p),
        ("q", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("stats", ctypes.c_void_p),
        ("arrived", ctypes.c_void_p),
        ("sinks", ctypes.c_void_p),
        ("score_scale", ctypes.c_float),
        ("exponent_scale", ctypes.c_float),
        ("window", ctypes.c_int32),
        ("most_items", ctypes.c_int32),
        ("chosen", ctypes.c_void_p),
        ("top_k", ctypes.c_int32),
        ("log_sums", ctypes.c_void_p),
    )


class AttentionMemory(msgspec.Struct, frozen=True):
    """What the attention ops of a KV group read and write besides slots."""

    kv: KVMemory
    block_table: int
    """Address of the description of the group's block table (`StepMemory.table`)."""
    plan: int
    """Address of the step's plan for the shape of the op (`plan_attention`)."""
    most_items: int
    """How many items there is room for in the plan (`AttentionShape.most_items`)."""
    scratch: AttentionScratch
    shape: AttentionShape


def shape_of(op: Attention, group: KVGroup, top_k: int = 0) -> AttentionShape:
    """Return the shape of an attention op; ``top_k`` is that of the indexer that chooses its positions.

    Raises:
        ValueError: a head has more than `MAX_HEAD_DIM` elements, or the scale is negative.
    """
    if op.head_dim > MAX_HEAD_DIM or op.scale < 0:
        raise ValueError(
            f"attention with heads of {op.head_dim} elements and scale {op.scale} is not supported"
        )
    return AttentionShape(op.heads, op.kv_heads, op.head_dim, group.window, op.value_dim, top_k, group.stride)


def slotted_shape(program: Program, slotted: SlottedOp) -> AttentionShape:
    """Return the shape of an attention op of a program."""
    op = slotted.op
    assert isinstance(op, Attention)
    top_k = 0 if op.chosen is None else program.slot_widths[slotted.inputs[-1]]
    return shape_of(op, program.groups[op.group], top_k)


def attention_launches(
    context: Context, slotted: SlottedOp, rows: int, memory: AttentionMemory
) -> list[Launch]:
    """Return the launches of an attention op for steps of at most ``rows`` rows: store keys and values if it
    has any, then attend.

    Raises:
        ValueError: the op is not supported.
    """
    op = slotted.op
    assert isinstance(op, Attention)
    q, *kv = slotted.inputs if op.chosen is None else slotted.inputs[:-1]
    store = StoreArgs(context.step, _kv_args(slotted, memory))
    if kv:
        store.k, store.v = map(context.slot, kv)
    if memory.kv.rotates_heads:
        store.q, store.q_out, store.heads = context.slot(q), _queries(context, q, memory), op.heads
    attend = _attend_launches(context, slotted, q, rows, memory)
    if not store.k and not store.q:
        return attend
    return [store_launch(context, memory.kv, store, rows), *attend]


def rotated_attention_launches(
    context: Context, instruction: Instruction, rows: int, memory: AttentionMemory
) -> list[Launch]:
    """Return the launches of the pattern ``("rope", "rope", "attention")``, also with two norms before it.

    If one rope turns the queries and the other the keys, and nothing else reads turned keys (with int4, also
    turned queries), both are done by the launch that stores keys and values; and so are norms of the heads
    that nothing but the ropes reads.

    Raises:
        ValueError: an op is not supported.
    """
    *before, attention = instruction.ops
    norms = [slotted for slotted in before if isinstance(slotted.op, Norm)]
    ropes = [slotted for slotted in before if isinstance(slotted.op, Rope)]
    op = attention.op
    assert isinstance(op, Attention)
    q_slot, *kv = attention.inputs if op.chosen is None else attention.inputs[:-1]
    of_q, of_k = _writer(ropes, q_slot), _writer(ropes, kv[0]) if kv else None
    q_norm, k_norm = (rope and _writer(norms, rope.inputs[0]) for rope in (of_q, of_k))
    if norms and not (_is_of_heads(q_norm, of_q, instruction) and _is_of_heads(k_norm, of_k, instruction)):
        single = [launch_norm(context, norm, rows) for norm in norms]
        rest = Instruction((*ropes, attention), instruction.part, instruction.outputs)
        return [*single, *rotated_attention_launches(context, rest, rows, memory)]
    if of_q is None or of_k is None or not _is_plain(of_q, of_k, attention, instruction, memory):
        single = [launch_norm(context, norm, rows) for norm in norms]
        single += [launch_rope(context, rope, rows) for rope in ropes]
        return [*single, *attention_launches(context, attention, rows, memory)]
    store = StoreArgs(
        context.step,
        _kv_args(attention, memory),
        context.slot((q_norm or of_q).inputs[0]),
        context.slot((k_norm or of_k).inputs[0]),
        context.slot(kv[1]),
        _queries(context, q_slot, memory),
        _rotation(context, of_q),
        _rotation(context, of_k),
        _head_norm(context, q_norm),
        _head_norm(context, k_norm),
        op.heads,
    )
    attend = _attend_launches(context, attention, q_slot, rows, memory)
    return [store_launch(context, memory.kv, store, rows), *attend]


def _writer(ops: Sequence[SlottedOp], slot: int) -> SlottedOp | None:
    """Return the only op that writes a slot; None if there is none, or several."""
    found = [slotted for slotted in ops if slot in slotted.outputs]
    return found[0] if len(found) == 1 else None


def _is_plain(
    of_q: SlottedOp,
    of_k: SlottedOp,
    attention: SlottedOp,
    instruction: Instruction,
    memory: AttentionMemory,
) -> bool:
    """Return whether the launch that stores keys can turn queries and keys."""
    q_slot, k_slot, v_slot = attention.inputs[:3]
    ropes = [slotted for slotted in instruction.ops if isinstance(slotted.op, Rope)]
    made = {rope.outputs[0] for rope in ropes}
    read = {v_slot, *(rope.inputs[0] for rope in ropes)}
    unwritten = {k_slot, q_slot} if memory.kv.rotates_heads else {k_slot}
    is_of_each = all(isinstance(rope.op, Rope) and rope.op.stride == 1 for rope in ropes)
    is_of_each &= memory.kv.group.stride == 1
    alone = of_q is not of_k and not unwritten & set(instruction.outputs) and not made & read
    return alone and is_of_each


def _is_of_heads(norm: SlottedOp | None, rope: SlottedOp | None, instruction: Instruction) -> bool:
    """Return whether a norm is one of heads (rms) that nothing but the rope reads."""
    if norm is None or rope is None:
        return False
    assert isinstance(norm.op, Norm)
    assert isinstance(rope.op, Rope)
    readers = [slotted for slotted in instruction.ops if norm.outputs[0] in slotted.inputs]
    return (
        norm.op.method == "rms"
        and norm.op.bias is None
        and not norm.op.own_weights
        and norm.op.heads == rope.op.heads
        and readers == [rope]
        and norm.outputs[0] not in instruction.outputs
    )


def _head_norm(context: Context, norm: SlottedOp | None) -> HeadNormArgs:
    if norm is None:
        return HeadNormArgs()
    assert isinstance(norm.op, Norm)
    return HeadNormArgs(1, norm.op.eps, norm.op.offset, context.vector(norm.weights[0]) or None)


def _queries(context: Context, q_slot: int, memory: AttentionMemory) -> int:
    """Return the address from which attention reads queries."""
    return memory.scratch.queries.pointer if memory.kv.rotates_heads else context.slot(q_slot)


def _kv_args(slotted: SlottedOp, memory: AttentionMemory) -> KVMemoryArgs:
    assert slotted.kv_layer is not None
    return memory.kv.args(slotted.kv_layer, memory.block_table)


def _rotation(context: Context, slotted: SlottedOp) -> RotationArgs:
    op = slotted.op
    assert isinstance(op, Rope)
    assert slotted.rope is not None
    pairs = len(op.table.inv_freq)
    return RotationArgs(context.ropes[slotted.rope].pointer, pairs, op.table.factor, op.interleaved)


def store_launch(context: Context, kv: KVMemory, args: StoreArgs, rows: int) -> Launch:
    """Return the launch that stores the keys and values of ``args``, and rotates its queries."""
    sides = 1 if kv.group.kind == "latent" else 2
    heads = args.heads + (sides * kv.group.kv_heads if args.k else 0)
    kernel = context.runtime.kernel(KernelSpec.of("store_kv", "store_kv", kv.defines(kv.store_codes)))
    return Launch(kernel, (rows, -(-heads // _HEADS_OF_BLOCK), 1), _STORING_THREADS, args, overlaps=True)


def _attend_spec(name: str, op: Attention, memory: AttentionMemory) -> KernelSpec:
    shape = memory.shape
    own = {
        "RATIO": shape.ratio,
        "TILES": shape.tiles,
        "SOFTCAP": int(op.softcap is not None),
        "SHORT_SPANS": SHORT_SPANS,
        "LONG_CHUNKS": shape.long_chunks,
    }
    options = {"CHOSEN": shape.top_k > 0, "SUMS": op.sums is not None}
    chosen = {option: 1 for option, is_used in options.items() if is_used}
    return KernelSpec.of("attention", name, memory.kv.defines(READ_CODES) | own | chosen)


def _attend_launches(
    context: Context, slotted: SlottedOp, q_slot: int, rows: int, memory: AttentionMemory
) -> list[Launch]:
    """Return the launch for split tiles, and that for whole tiles if a step of ``rows`` may have some."""
    op = slotted.op
    assert isinstance(op, Attention)
    shape = memory.shape
    args = _attend_args(context, slotted, q_slot, memory)
    blocks = max(1, _BLOCKS_OF_PROCESSOR * context.runtime.num_processors // shape.columns)
    launches = [_attend_launch(context, "attention_split", op, (blocks, shape.columns, 1), args, memory)]
    if not shape.is_always_split(rows, context.program.context_len):
        grid = (shape.columns, shape.most_whole(rows, context.limits), 1)
        launches.append(_attend_launch(context, "attention_whole", op, grid, args, memory))
    return launches


def _attend_launch(
    context: Context,
    name: str,
    op: Attention,
    grid: tuple[int, int, int],
    args: AttentionArgs,
    memory: AttentionMemory,
) -> Launch:
    kernel = context.runtime.kernel(_attend_spec(name, op, memory))
    threads = _WARP * memory.shape.warps
    return Launch(kernel, grid, threads, args, overlaps=True)


def _attend_args(context: Context, slotted: SlottedOp, q_slot: int, memory: AttentionMemory) -> AttentionArgs:
    op = slotted.op
    assert isinstance(op, Attention)
    shape = memory.shape
    score_scale, exponent_scale = _scales(op)
    return AttentionArgs(
        _kv_args(slotted, memory),
        memory.plan,
        _queries(context, q_slot, memory),
        context.slot(slotted.outputs[0]),
        memory.scratch.sums.pointer,
        memory.scratch.stats.pointer,
        memory.scratch.arrived.pointer,
        context.vector(slotted.weights[0]),
        score_scale,
        exponent_scale,
        min(shape.window or _NO_WINDOW, _NO_WINDOW),
        memory.most_items,
        context.slot(slotted.inputs[-1]) if shape.top_k else None,
        shape.top_k,
        context.slot(slotted.outputs[1]) if op.sums else None,
    )


def _scales(op: Attention) -> tuple[float, float]:
    """Return (factor of a product for tanh, if there is a softcap; factor of a score for exponents)."""
    if op.softcap is None:
        return 1.0, max(op.scale * math.log2(math.e), _LEAST_SCALE)
    return op.scale / op.softcap, op.softcap * math.log2(math.e)
