"""Ops whose elements do not depend on each other: add, glu, activate, gate, multiply and join."""

from __future__ import annotations

import ctypes
import math

from llmd.api.activations import ACTIVATIONS
from llmd.api.latent_ops import Join
from llmd.api.ops import Activate, Add, Gate, Glu, Multiply
from llmd.api.program import SlottedOp
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.runtime import KernelSpec, Launch

_THREADS = 256
_ELEMENTS = 4
"""Elements of a thread."""


class ElementwiseArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/elementwise.cu``."""

    _fields_ = (
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("threshold", ctypes.c_float),
        ("limit", ctypes.c_float),
        ("slice", ctypes.c_int32),
        ("other_slice", ctypes.c_int32),
    )


def launch_add(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of an add."""
    assert isinstance(slotted.op, Add)
    args = _args(context, slotted, rows)
    args.scale = slotted.op.scale
    return _launch(context, KernelSpec.of("elementwise", "add_rows"), args)


def launch_glu(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of a glu."""
    assert isinstance(slotted.op, Glu)
    args = _args(context, slotted, rows)
    args.threshold, args.limit = slotted.op.threshold, limit_of(slotted.op)
    defines = {"ACTIVATION": ACTIVATIONS.index(slotted.op.activation)}
    return _launch(context, KernelSpec.of("elementwise", "glu_rows", defines), args)


def limit_of(op: Glu) -> float:
    """Return the limit of a glu; infinity if it has none."""
    return math.inf if op.limit is None else op.limit


def launch_activate(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of an activation."""
    assert isinstance(slotted.op, Activate)
    defines = {"ACTIVATION": ACTIVATIONS.index(slotted.op.activation)}
    args = _args(context, slotted, rows)
    return _launch(context, KernelSpec.of("elementwise", "activate_rows", defines), args)


def launch_gate(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of a gate."""
    assert isinstance(slotted.op, Gate)
    width, gates = (context.program.slot_widths[slot] for slot in slotted.inputs)
    args = _args(context, slotted, rows)
    args.slice = width // gates
    return _launch(context, KernelSpec.of("elementwise", "gate_rows"), args)


def launch_multiply(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of a multiplication by one number."""
    assert isinstance(slotted.op, Multiply)
    args = _args(context, slotted, rows)
    args.b = context.vector(slotted.weights[0])
    return _launch(context, KernelSpec.of("elementwise", "multiply_rows"), args)


def launch_join(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch that joins the slices of two values."""
    assert isinstance(slotted.op, Join)
    args = _args(context, slotted, rows)
    widths = (context.program.slot_widths[slot] for slot in slotted.inputs)
    args.slice, args.other_slice = (width // slotted.op.heads for width in widths)
    return _launch(context, KernelSpec.of("elementwise", "join_rows"), args)


def launch_copy(context: Context, source: int, target: int, rows: int) -> Launch:
    """Return the launch that copies a slot to another one of the same width."""
    width = context.program.slot_widths[source]
    args = ElementwiseArgs(a=context.slot(source), out=context.slot(target), count=rows * width, slice=width)
    return _launch(context, KernelSpec.of("elementwise", "join_rows"), args)


def _args(context: Context, slotted: SlottedOp, rows: int) -> ElementwiseArgs:
    """Return the arguments of an op with one or two inputs."""
    a, *b = (context.slot(slot) for slot in slotted.inputs)
    out = slotted.outputs[0]
    count = rows * context.program.slot_widths[out]
    return ElementwiseArgs(a=a, b=b[0] if b else 0, out=context.slot(out), count=count)


def _launch(context: Context, spec: KernelSpec, args: ElementwiseArgs) -> Launch:
    blocks = -(-args.count // (_ELEMENTS * _THREADS))
    return Launch(context.runtime.kernel(spec), (blocks, 1, 1), _THREADS, args)
