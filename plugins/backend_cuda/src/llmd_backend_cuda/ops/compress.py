"""Vectors that stand for several tokens: keep what they are made of, then make them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import msgspec

from llmd.api import Compress, Program, SlottedOp
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.kv_memory import KVMemoryArgs
from llmd_backend_cuda.ops.embed import FORMATS
from llmd_backend_cuda.parts_memory import PartsMemory
from llmd_backend_cuda.runtime import KernelSpec, Launch

_THREADS = 128


class CompressArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/compress.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("memory", KVMemoryArgs),
        ("x", ctypes.c_void_p),
        ("gate", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("stride", ctypes.c_int32),
        ("overlap", ctypes.c_int32),
    )


class PartsOfGroup(msgspec.Struct, frozen=True):
    """What the ops of a KV group read and write besides slots."""

    memory: PartsMemory
    block_table: int
    """Address of the description of the group's block table (`StepMemory.table`)."""


def part_groups(program: Program) -> set[int]:
    """Return the KV groups that keep what vectors are made of."""
    return {op.group for op in (slotted.op for slotted in program.ops) if isinstance(op, Compress)}


def compress_launches(
    context: Context, slotted: SlottedOp, rows: int, parts: PartsOfGroup
) -> Iterator[Launch]:
    """Yield the launches for steps of at most ``rows`` rows: keep x and gate, then make vectors."""
    op = slotted.op
    assert isinstance(op, Compress)
    assert slotted.kv_layer is not None
    x, gate = map(context.slot, slotted.inputs)
    args = CompressArgs(
        context.step,
        parts.memory.args(slotted.kv_layer, parts.block_table),
        x,
        gate,
        context.vector(slotted.weights[0]),
        context.slot(slotted.outputs[0]),
        context.program.slot_widths[slotted.inputs[0]],
        op.dim,
        op.stride,
        op.overlap,
    )
    defines = {"FORMAT": FORMATS[parts.memory.format]}
    for name, width in (("keep_parts", 2 * args.width), ("compress", op.dim)):
        kernel = context.runtime.kernel(KernelSpec.of("compress", name, defines))
        yield Launch(kernel, (rows, -(-width // _THREADS), 1), _THREADS, args, overlaps=True)
