"""Hyper-connections: the weights of streams, and their mixtures."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from llmd.api import CollapseStreams, MixStreams, Program, SlottedOp, StageLimits, StreamWeights
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.embed import FORMATS, Table, vector_of
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory

MAX_STREAMS = 8
"""Most streams of hidden states."""

_THREADS = 256
_ROWS = 4
_OUTS = 8
"""Rows and outputs of a block of ``stream_products``."""
_WARP = 32


class StreamWeightsArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/streams.cu``."""

    _fields_ = (
        ("counts", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("weight", ctypes.c_void_p),
        ("products", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("scale", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("rounds", ctypes.c_int32),
        ("eps", ctypes.c_float),
        ("floor", ctypes.c_float),
    )


class MixArgs(ctypes.Structure):
    """``struct MixArgs`` of ``kernels/streams.cu``."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("count", ctypes.c_int32),
    )


def stream_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of the products of the largest op: float32 ``[max_rows, weights of a row + 1]``."""
    ops = (slotted for slotted in program.ops if isinstance(slotted.op, StreamWeights))
    counts = [program.slot_widths[slotted.outputs[0]] + 1 for slotted in ops]
    return 4 * limits.max_rows * max(counts, default=0)


def stream_weights_launches(
    context: Context, slotted: SlottedOp, rows: int, table: Table, products: Memory
) -> Iterator[Launch]:
    """Yield the launches of the weights of streams: products, then what becomes of them.

    ``products`` is memory of `stream_bytes`.
    """
    op = slotted.op
    assert isinstance(op, StreamWeights)
    x, out = slotted.inputs[0], slotted.outputs[0]
    width, count = (context.program.slot_widths[slot] for slot in (x, out))
    args = StreamWeightsArgs(
        context.step.counts,
        context.slot(x),
        table.pointer,
        products.pointer,
        *(context.vector(index) for index in slotted.weights[1:]),
        context.slot(out),
        width,
        count,
        op.rounds,
        op.eps,
        op.floor,
    )
    defines = {"FORMAT": FORMATS[table.format], "VECTOR": vector_of(width, table), "STREAMS": op.streams}
    multiply, weigh = (
        context.runtime.kernel(KernelSpec.of("streams", name, defines))
        for name in ("stream_products", "stream_weights")
    )
    grid = (-(-count // _OUTS), -(-rows // _ROWS), 1)
    yield Launch(multiply, grid, _THREADS, args, overlaps=True)
    yield Launch(weigh, (rows, 1, 1), _WARP, args, overlaps=True)


def launch_collapse_streams(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of the mixture that a layer reads."""
    op = slotted.op
    assert isinstance(op, CollapseStreams)
    x, weights = slotted.inputs
    return _launch_mixture(
        context, "collapse_streams", op.streams, (x, None, weights, slotted.outputs[0]), rows
    )


def launch_mix_streams(context: Context, slotted: SlottedOp, rows: int) -> Launch:
    """Return the launch of the streams after a layer."""
    op = slotted.op
    assert isinstance(op, MixStreams)
    x, y, weights = slotted.inputs
    return _launch_mixture(context, "mix_streams", op.streams, (x, y, weights, slotted.outputs[0]), rows)


def _launch_mixture(
    context: Context, name: str, streams: int, slots: tuple[int, int | None, int, int], rows: int
) -> Launch:
    """Return a launch with the slots of streams, of the output of a layer, of weights and of the result."""
    widths = context.program.slot_widths
    width = widths[slots[0]] // streams
    x, y, weights, out = (None if slot is None else context.slot(slot) for slot in slots)
    args = MixArgs(x, y, weights, out, width, widths[slots[2]])
    vector = 1 if width % 4 else 4
    defines = {"VECTOR": vector, "STREAMS": streams}
    kernel = context.runtime.kernel(KernelSpec.of("streams", name, defines))
    return Launch(kernel, (rows, -(-width // (vector * _THREADS)), 1), _THREADS, args)
