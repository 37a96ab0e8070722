"""Rotate queries or keys by their positions."""

from __future__ import annotations

import ctypes

from llmd.api.ops import Rope
from llmd.api.program import SlottedOp
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.runtime import KernelSpec, Launch

MAX_PAIRS = 512
"""Most pairs of a head."""

_THREADS = 128
_HEADS_OF_BLOCK = 4


class RopeArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/rope.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("x", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("inv_freq", ctypes.c_void_p),
        ("factor", ctypes.c_float),
        ("heads", ctypes.c_int32),
        ("head_dim", ctypes.c_int32),
        ("pairs", ctypes.c_int32),
        ("interleaved", ctypes.c_int32),
        ("stride", ctypes.c_int32),
    )


def launch_rope(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of a rope op.

    Raises:
        ValueError: a head has more than `MAX_PAIRS` pairs.
    """
    op = slotted.op
    assert isinstance(op, Rope)
    assert slotted.rope is not None
    pairs = len(op.table.inv_freq)
    if pairs > MAX_PAIRS:
        raise ValueError(f"a rope of {pairs} pairs has more than {MAX_PAIRS}")
    args = RopeArgs(
        context.step,
        context.slot(slotted.inputs[0]),
        context.slot(slotted.outputs[0]),
        context.ropes[slotted.rope].pointer,
        op.table.factor,
        op.heads,
        op.head_dim,
        pairs,
        op.interleaved,
        op.stride,
    )
    kernel = context.runtime.kernel(KernelSpec.of("rope", "rope_rows"))
    return Launch(kernel, (rows, -(-op.heads // _HEADS_OF_BLOCK), 1), _THREADS, args)
