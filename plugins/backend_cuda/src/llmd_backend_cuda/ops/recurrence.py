"""The recurrence that tests use, with a state for each sequence."""

from __future__ import annotations

import ctypes

import msgspec

from llmd.api.ops import Recurrence
from llmd.api.program import SlottedOp
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.runtime import KernelSpec, Launch

_THREADS = 128


class States(msgspec.Struct, frozen=True):
    """The memory of a ``state`` group."""

    pointer: int
    """Address of float32 ``[slots, layers, width]``."""
    table: int
    """Address of the description of the group's block table (`StepMemory.table`)."""
    layers: int
    """Number of layers in a slot."""


class RecurrenceArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/recurrence.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("x", ctypes.c_void_p),
        ("decay", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("states", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("layers", ctypes.c_int32),
        ("layer", ctypes.c_int32),
    )


def launch_recurrence(context: Context, slotted: SlottedOp, rows: int, states: States) -> Launch:
    """Return the launch of a recurrence."""
    assert isinstance(slotted.op, Recurrence)
    (x,), (out,), (decay,) = slotted.inputs, slotted.outputs, slotted.weights
    width = context.program.slot_widths[out]
    args = RecurrenceArgs(
        context.step,
        context.slot(x),
        context.vector(decay),
        context.slot(out),
        states.pointer,
        states.table,
        width,
        states.layers,
        slotted.kv_layer or 0,
    )
    sequences = min(rows, context.limits.max_sequences)
    kernel = context.runtime.kernel(KernelSpec.of("recurrence", "recurrence"))
    return Launch(kernel, (-(-width // _THREADS), sequences, 1), _THREADS, args)
