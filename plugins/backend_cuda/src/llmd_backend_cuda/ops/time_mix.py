"""The ops of RWKV-7, which keep parts of one state of a layer for each sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from llmd.api import GeneralizedDelta, SlottedOp, TokenShift
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.ops.state_rows import COLUMNS, THREADS, StateRows
from llmd_backend_cuda.runtime import KernelSpec, Launch

MAX_SHIFTS = 8
"""Most outputs of a token shift."""


class ShiftArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/token_shift.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("x", ctypes.c_void_p),
        ("outs", ctypes.c_void_p * MAX_SHIFTS),
        ("shares", ctypes.c_void_p * MAX_SHIFTS),
        ("states", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("count", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("layers", ctypes.c_int32),
        ("layer", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("offset", ctypes.c_int32),
    )


class WkvArgs(ctypes.Structure):
    """``struct WkvArgs`` of ``kernels/generalized_delta.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("r", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("decay", ctypes.c_void_p),
        ("a", ctypes.c_void_p),
        ("removal", ctypes.c_void_p),
        ("mixing", ctypes.c_void_p),
        ("bonuses", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("decays", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("bonus", ctypes.c_void_p),
        ("states", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("layers", ctypes.c_int32),
        ("layer", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("offset", ctypes.c_int32),
    )


def launch_token_shift(context: Context, slotted: SlottedOp, rows: int, states: States) -> Launch:
    """Return the launch of a token shift."""
    op = slotted.op
    assert isinstance(op, TokenShift)
    width = op.state_elements
    outs = tuple(context.slot(slot) for slot in slotted.outputs)
    args = ShiftArgs(
        step=context.step,
        x=context.slot(slotted.inputs[0]),
        outs=outs,
        shares=tuple(context.vector(index) for index in slotted.weights),
        states=states.pointer,
        table=states.table,
        count=len(outs),
        width=width,
        layers=states.layers,
        layer=slotted.kv_layer or 0,
        size=_state_size(context, op),
        offset=op.offset,
    )
    kernel = context.runtime.kernel(KernelSpec.of("token_shift", "shift_rows"))
    sequences = min(rows, context.limits.max_sequences)
    return Launch(kernel, (-(-width // THREADS), sequences, 1), THREADS, args)


def generalized_delta_launches(
    context: Context, slotted: SlottedOp, rows: int, states: States, scratch: StateRows
) -> Iterator[Launch]:
    """Yield the launches that turn rows into what changes states, then change states by them."""
    op = slotted.op
    assert isinstance(op, GeneralizedDelta)
    inputs = (context.slot(slot) for slot in slotted.inputs)
    vectors = (context.vector(index) for index in slotted.weights)
    args = WkvArgs(
        context.step,
        *inputs,
        *vectors,
        rows=scratch.mixed.pointer,
        decays=scratch.decays.pointer,
        out=context.slot(slotted.outputs[0]),
        bonus=context.slot(slotted.outputs[1]),
        states=states.pointer,
        table=states.table,
        layers=states.layers,
        layer=slotted.kv_layer or 0,
        heads=op.heads,
        size=_state_size(context, op),
        offset=op.offset,
    )
    prepare, run = (
        context.runtime.kernel(KernelSpec.of("generalized_delta", name, {"KEY_DIM": op.head_dim}))
        for name in ("prepare_rows", "run_rows")
    )
    yield Launch(prepare, (op.heads, rows, 1), THREADS, args, overlaps=True)
    sequences = min(rows, context.limits.max_sequences)
    grid = (-(-op.head_dim // COLUMNS), op.heads, sequences)
    yield Launch(run, grid, THREADS, args, overlaps=True)


def _state_size(context: Context, op: TokenShift | GeneralizedDelta) -> int:
    """Return the float32 elements of the state of a layer."""
    return context.program.groups[op.group].state_bytes // 4
