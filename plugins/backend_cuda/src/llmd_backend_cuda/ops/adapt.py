"""Corrections of products by adapters."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from llmd.api import Adapt, SlottedOp
from llmd.api.adapter_items import ITEM, num_ranks, ranks_of
from llmd_backend_cuda.adapter_memory import AdapterStep
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.elementwise import launch_copy
from llmd_backend_cuda.runtime import KernelSpec, Launch

_THREADS = 256
"""Threads of a block, each of which has an output in ``adapt_outputs``."""
_RANKS = 4
"""Ranks of a block of ``adapt_middle``."""


class AdaptArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/adapt.cu``."""

    _fields_ = (
        ("items", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("changes", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("middle", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("values", ctypes.c_int32),
        ("ranks", ctypes.c_int32),
    )


def adapt_launches(
    context: Context, slotted: SlottedOp, rows: int, adapters: AdapterStep | None
) -> Iterator[Launch]:
    """Yield the launches of the op: copies of values that are read later as they were, and what is added.

    ``adapters`` is None for steps in which no row has an adapter.
    """
    for value, out in zip(slotted.inputs[1:], slotted.outputs, strict=True):
        if value != out:
            yield launch_copy(context, value, out, rows)
    if adapters is not None:
        yield from _added(context, slotted, adapters)


def _added(context: Context, slotted: SlottedOp, adapters: AdapterStep) -> Iterator[Launch]:
    op, x = slotted.op, slotted.inputs[0]
    assert isinstance(op, Adapt)
    args = AdaptArgs(
        adapters.items,
        adapters.items + 4 * ITEM * adapters.most_items,
        adapters.memory.changes[slotted].pointer,
        context.slot(x),
        adapters.memory.middle.pointer,
        context.program.slot_widths[x],
        len(op.outs),
        num_ranks(op),
    )
    ranks = max(sum(-(-rank // _RANKS) for rank in of_adapter) for of_adapter in ranks_of(op))
    outputs = sum(-(-context.program.slot_widths[out] // _THREADS) for out in slotted.outputs)
    for name, blocks in (("adapt_middle", ranks), ("adapt_outputs", outputs)):
        kernel = context.runtime.kernel(KernelSpec.of("adapt", name))
        yield Launch(kernel, (blocks, adapters.most_items, 1), _THREADS, args, overlaps=True)
