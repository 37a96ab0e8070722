"""Normalise rows or heads, and add the residual connection in the same launch."""

from __future__ import annotations

import ctypes

from llmd.api.ops import Add, Norm
from llmd.api.program import Instruction, SlottedOp
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.runtime import KernelSpec, Launch

MAX_WIDTH = 20480
"""Most elements of a slice. A block keeps a slice in registers."""

_WARP = 32
_MOST_WARPS = 16
_SLICES = 4
"""Slices of a block, if a slice has one warp."""
_LOADS_OF_WARP = 4
"""Most vectors that each lane of a single warp keeps."""


class NormArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/norm.cu``."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("weight", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("slices", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("weights", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("eps", ctypes.c_float),
    )


def launch_norm(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of a norm.

    Raises:
        ValueError: a slice is wider than `MAX_WIDTH`.
    """
    return _launch(context, slotted, _norm_args(context, slotted, rows), {"ADD": 0})


def launch_norm_add(context: Context, instruction: Instruction, rows: int) -> Launch:
    """Return the launch of the pattern ``("norm", "add")``, where the add alone reads what the norm writes.

    Raises:
        ValueError: a slice is wider than `MAX_WIDTH`.
    """
    norm, add = instruction.ops
    assert isinstance(add.op, Add)
    assert add.inputs[1:] == norm.outputs
    args = _norm_args(context, norm, rows)
    args.residual, args.out = context.slot(add.inputs[0]), context.slot(add.outputs[0])
    args.scale = add.op.scale
    return _launch(context, norm, args, {"ADD": 1})


def _norm_args(context: Context, slotted: SlottedOp, rows: int) -> NormArgs:
    """Return the arguments of a norm without a residual connection."""
    op, out = slotted.op, slotted.outputs[0]
    assert isinstance(op, Norm)
    weight, bias = slotted.weights
    return NormArgs(
        x=context.slot(slotted.inputs[0]),
        weight=context.vector(weight),
        bias=context.vector(bias),
        out=context.slot(out),
        slices=rows * op.heads,
        width=context.program.slot_widths[out] // op.heads,
        weights=op.heads if op.own_weights else 1,
        offset=op.offset,
        eps=op.eps,
    )


def _launch(context: Context, slotted: SlottedOp, args: NormArgs, defines: dict[str, int | str]) -> Launch:
    op = slotted.op
    assert isinstance(op, Norm)
    vector = 1 if args.width % 4 else 4
    warps, loads = _shape(args.width, vector)
    defines |= {"LAYER": int(op.method == "layer"), "WARPS": warps, "LOADS": loads, "VECTOR": vector}
    kernel = context.runtime.kernel(KernelSpec.of("norm", "norm_rows", defines))
    slices = _SLICES if warps == 1 else 1
    return Launch(kernel, (-(-args.slices // slices), 1, 1), _WARP * warps * slices, args)


def _shape(width: int, vector: int) -> tuple[int, int]:
    """Return (warps of a slice, vectors that each lane keeps).

    They fix the order of the sums, and so depend on nothing else. Few vectors in many lanes are read
    sooner; a single warp needs no barrier.
    """
    if width > MAX_WIDTH:
        raise ValueError(f"a norm over {width} elements is wider than the {MAX_WIDTH} that a block can keep")
    vectors = -(-width // (vector * _WARP))
    warps = 1 if vectors <= _LOADS_OF_WARP else min(-(-vectors // 2), _MOST_WARPS)
    return warps, -(-vectors // warps)
