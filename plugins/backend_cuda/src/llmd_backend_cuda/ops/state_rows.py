"""What ops with a matrix for each head share: their arguments, scratch memory and launches."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence

import msgspec

from llmd.api import GatedDelta, GeneralizedDelta, Op, Program, SlottedOp, StageLimits, StateSpace
from llmd.api.state_ops import StateSizes
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

MAX_KEY_DIM = 256
"""Most elements of a key: a thread has the state of a quarter of them in registers."""

THREADS = 128
COLUMNS = 32
"""Of a state, in a block."""


class StateArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/state_rows.cuh``."""

    _fields_ = (
        ("step", StepArgs),
        ("inputs", ctypes.c_void_p * 3),
        ("decay", ctypes.c_void_p),
        ("beta", ctypes.c_void_p),
        ("taps", ctypes.c_void_p * 3),
        ("shifts", ctypes.c_void_p * 3),
        ("rates", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("skips", ctypes.c_void_p),
        ("mixed", ctypes.c_void_p),
        ("decays", ctypes.c_void_p),
        ("shares", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("states", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("layers", ctypes.c_int32),
        ("layer", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("key_heads", ctypes.c_int32),
        ("value_dim", ctypes.c_int32),
        ("num_taps", ctypes.c_int32),
        ("rates_are_logs", ctypes.c_int32),
        ("is_tiled", ctypes.c_int32),
        ("least_time", ctypes.c_float),
        ("most_time", ctypes.c_float),
    )


class StateRowsSizes(msgspec.Struct, frozen=True):
    """Bytes of `StateRows`."""

    mixed: int
    decays: int
    shares: int

    @classmethod
    def of(cls, program: Program, limits: StageLimits) -> StateRowsSizes:
        """Return what the largest op of a program needs; nothing if there is none."""
        widths = [found for slotted in program.ops if (found := _row_widths(slotted.op))]
        most = [max(column) for column in zip(*widths, strict=True)] or [0, 0, 0]
        return cls(*(4 * limits.max_rows * width for width in most))

    @property
    def num_bytes(self) -> int:
        """Bytes of everything."""
        return self.mixed + self.decays + self.shares


def _row_widths(op: Op) -> tuple[int, int, int] | None:
    """Return the elements of what a row is turned into, of its decays and of its shares, if it changes a
    matrix.
    """
    match op:
        case GatedDelta() | StateSpace():
            return op.sizes.width, op.bias.view_shape[-1], op.heads
        case GeneralizedDelta():
            return op.sizes.width, op.heads * op.head_dim, 0
        case _:
            return None


class StateRows(msgspec.Struct, frozen=True):
    """What rows are turned into before they change a state; all ops of a stage share it."""

    mixed: Memory
    """Float32 ``[max_rows, queries, keys and values]``."""
    decays: Memory
    """Float32 ``[max_rows, decays]``."""
    shares: Memory
    """Float32 ``[max_rows, heads]``."""

    @classmethod
    def allocate(cls, runtime: Runtime, sizes: StateRowsSizes) -> StateRows:
        """Take the memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        return cls(*(runtime.allocate(size) for size in (sizes.mixed, sizes.decays, sizes.shares)))


def state_args(
    context: Context, slotted: SlottedOp, states: States, scratch: StateRows, vectors: Sequence[int]
) -> StateArgs:
    """Return the arguments of an op, without those that only one kind of op has.

    Its first inputs are queries, keys, values and decays; ``vectors`` are the addresses of its taps, rates
    and bias.
    """
    op = slotted.op
    assert isinstance(op, GatedDelta | StateSpace)
    q, k, v, decay = (context.slot(slot) for slot in slotted.inputs[:4])
    q_taps, k_taps, v_taps, rates, bias = vectors
    sizes = op.sizes
    return StateArgs(
        step=context.step,
        inputs=(q, k, v),
        decay=decay,
        taps=(q_taps, k_taps, v_taps),
        rates=rates,
        bias=bias,
        mixed=scratch.mixed.pointer,
        decays=scratch.decays.pointer,
        shares=scratch.shares.pointer,
        out=context.slot(slotted.outputs[0]),
        states=states.pointer,
        table=states.table,
        layers=states.layers,
        layer=slotted.kv_layer or 0,
        heads=sizes.heads,
        key_heads=sizes.key_heads,
        value_dim=sizes.value_dim,
        num_taps=sizes.taps,
        rates_are_logs=op.rates_as == "log",
        most_time=math.inf,
    )


def state_launches(
    context: Context, source: str, args: StateArgs, sizes: StateSizes, rows: int, *, by_element: bool = False
) -> Iterator[Launch]:
    """Yield the launches that turn rows into what changes states, then change states by them."""
    defines = {"KEY_DIM": sizes.key_dim, "BY_ELEMENT": int(by_element)}
    prepare, run = (
        context.runtime.kernel(KernelSpec.of(source, name, defines)) for name in ("prepare_rows", "run_rows")
    )
    heads = 2 * sizes.key_heads + sizes.heads
    yield Launch(prepare, (heads, rows, 1), THREADS, args, overlaps=True)
    sequences = min(rows, context.limits.max_sequences)
    grid = (-(-sizes.value_dim // COLUMNS), sizes.heads, sequences)
    yield Launch(run, grid, THREADS, args, overlaps=True)
