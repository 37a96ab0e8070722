"""Linear attention with the gated delta rule, with a state for each sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import msgspec

from llmd.api import Program, SlottedOp, StageLimits
from llmd.api.state_ops import GatedDelta
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

MAX_KEY_DIM = 256
"""Most elements of a key: a thread has the state of a quarter of them in registers."""

_THREADS = 128
_COLUMNS = 32


class DeltaArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/gated_delta.cu``."""

    _fields_ = (
        ("step", StepArgs),
        ("inputs", ctypes.c_void_p * 3),
        ("decay", ctypes.c_void_p),
        ("beta", ctypes.c_void_p),
        ("taps", ctypes.c_void_p * 3),
        ("rates", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
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
    )


class DeltaSizes(msgspec.Struct, frozen=True):
    """Bytes of `DeltaRows`."""

    mixed: int
    decays: int
    shares: int

    @classmethod
    def of(cls, program: Program, limits: StageLimits) -> DeltaSizes:
        """Return what the largest op of a program needs; nothing if there is none."""
        found = [slotted.op for slotted in program.ops if isinstance(slotted.op, GatedDelta)]
        widths = [(op.sizes.width, op.bias.view_shape[-1], op.heads) for op in found]
        most = [max(column) for column in zip(*widths, strict=True)] or [0, 0, 0]
        return cls(*(4 * limits.max_rows * width for width in most))

    @property
    def num_bytes(self) -> int:
        """Bytes of everything."""
        return self.mixed + self.decays + self.shares


class DeltaRows(msgspec.Struct, frozen=True):
    """What rows are turned into before they change a state; all ops of a stage share it."""

    mixed: Memory
    """Float32 ``[max_rows, queries, keys and values]``."""
    decays: Memory
    """Float32 ``[max_rows, decays]``."""
    shares: Memory
    """Float32 ``[max_rows, heads]``."""

    @classmethod
    def allocate(cls, runtime: Runtime, sizes: DeltaSizes) -> DeltaRows:
        """Take the memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        return cls(*(runtime.allocate(size) for size in (sizes.mixed, sizes.decays, sizes.shares)))


def gated_delta_launches(
    context: Context, slotted: SlottedOp, rows: int, states: States, scratch: DeltaRows
) -> Iterator[Launch]:
    """Yield the launches that convolve rows, then change states by them."""
    op = slotted.op
    assert isinstance(op, GatedDelta)
    args = _args(context, slotted, states, scratch)
    defines = {"KEY_DIM": op.key_dim, "BY_ELEMENT": int(op.decays_elements)}
    prepare, run = (
        context.runtime.kernel(KernelSpec.of("gated_delta", name, defines))
        for name in ("prepare_rows", "run_rows")
    )
    heads = 2 * op.key_heads + op.heads
    yield Launch(prepare, (heads, rows, 1), _THREADS, args, overlaps=True)
    sequences = min(rows, context.limits.max_sequences)
    grid = (-(-op.value_dim // _COLUMNS), op.heads, sequences)
    yield Launch(run, grid, _THREADS, args, overlaps=True)


def _args(context: Context, slotted: SlottedOp, states: States, scratch: DeltaRows) -> DeltaArgs:
    op = slotted.op
    assert isinstance(op, GatedDelta)
    q, k, v, decay, beta = (context.slot(slot) for slot in slotted.inputs)
    q_taps, k_taps, v_taps, rates, bias = (context.vector(index) for index in slotted.weights)
    return DeltaArgs(
        step=context.step,
        inputs=(q, k, v),
        decay=decay,
        beta=beta,
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
        heads=op.heads,
        key_heads=op.key_heads,
        value_dim=op.value_dim,
        num_taps=op.taps,
        rates_are_logs=op.rates_as == "log",
        is_tiled=op.tiled,
    )
