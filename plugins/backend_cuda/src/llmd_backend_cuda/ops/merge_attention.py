"""Join attention to two sets of positions."""

from __future__ import annotations

import ctypes

from llmd.api import MergeAttention, SlottedOp
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.runtime import KernelSpec, Launch

_THREADS = 256


class MergeArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/merge_attention.cu``."""

    _fields_ = (
        ("a", ctypes.c_void_p),
        ("a_sums", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("b_sums", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("dim", ctypes.c_int32),
    )


def launch_merge_attention(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of an op that joins the results of two attention ops."""
    op = slotted.op
    assert isinstance(op, MergeAttention)
    out = slotted.outputs[0]
    width = context.program.slot_widths[out]
    dim = width // op.heads
    args = MergeArgs(*map(context.slot, slotted.inputs), context.slot(out), rows * width, dim)
    vector = 1 if dim % 4 else 4
    kernel = context.runtime.kernel(KernelSpec.of("merge_attention", "merge_attention", {"VECTOR": vector}))
    return Launch(kernel, (-(-args.count // (vector * _THREADS)), 1, 1), _THREADS, args)
