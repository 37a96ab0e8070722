"""Attention of encoders: to every row of the sequence in the step."""

from __future__ import annotations

import ctypes
import math

from llmd.api.ops import EncoderAttention
from llmd.api.program import SlottedOp
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.runtime import KernelSpec, Launch

MAX_HEAD_DIM = 256
"""Most elements of a head. A warp keeps 16 queries and their sums in registers."""

_THREADS = 128
_TILE = 64
"""Rows of a block."""


class EncoderAttentionArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/encoder_attention.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("heads", ctypes.c_int32),
        ("scale", ctypes.c_float),
    )


def launch_encoder_attention(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of an encoder's attention.

    Raises:
        ValueError: a head has more than `MAX_HEAD_DIM` elements.
    """
    op = slotted.op
    assert isinstance(op, EncoderAttention)
    if op.head_dim > MAX_HEAD_DIM:
        raise ValueError(f"a head of {op.head_dim} elements is larger than {MAX_HEAD_DIM}")
    spec = KernelSpec.of("encoder_attention", "encoder_attention", {"HEAD_DIM": op.head_dim})
    q, k, v = (context.slot(slot) for slot in slotted.inputs)
    out = context.slot(slotted.outputs[0])
    args = EncoderAttentionArgs(context.step, q, k, v, out, op.heads, op.scale * math.log2(math.e))
    return Launch(context.runtime.kernel(spec), (-(-rows // _TILE), op.heads, 1), _THREADS, args)
