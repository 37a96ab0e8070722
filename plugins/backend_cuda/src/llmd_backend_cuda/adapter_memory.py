"""What the adapters of a stage have in the device's memory besides their matrices."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Self

import msgspec
import numpy as np

from llmd.api import Adapt, Program, SlottedOp, StageLimits
from llmd.api.adapter_items import adapt_ops, middle_size
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.embed import FORMATS, Table
from llmd_backend_cuda.runtime import Memory


class ChangeArgs(ctypes.Structure):
    """``struct Change`` of ``kernels/adapt.cu``."""

    _fields_ = (
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("a_format", ctypes.c_int32),
        ("b_format", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
        ("first", ctypes.c_int32),
    )


class AdapterMemory(msgspec.Struct, frozen=True):
    """The changes of each op, and scratch that all of them share."""

    changes: Mapping[SlottedOp, Memory]
    """`ChangeArgs` ``[adapters, values]``."""
    middle: Memory
    """Float32 ``[items, ROWS, ranks]``."""

    @classmethod
    def of(cls, context: Context, tables: Mapping[int, Table]) -> Self:
        """Describe the changes to the device; ``tables`` are the matrices, by weight of the program.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        runtime, changes = context.runtime, {}
        for slotted, op in adapt_ops(context.program):
            described = np.frombuffer(_changes(context, slotted, op, tables), np.uint8)
            changes[slotted] = runtime.allocate(described.nbytes)
            runtime.upload(changes[slotted], 0, described)
        return cls(changes, runtime.allocate(4 * middle_size(context.program, context.limits)))

    @staticmethod
    def num_bytes(program: Program, limits: StageLimits) -> int:
        """Return the bytes of device memory that it takes; 0 for a program without adapters."""
        count = sum(op.num_adapters * len(op.outs) for op in dict(adapt_ops(program)).values())
        return count * ctypes.sizeof(ChangeArgs) + 4 * middle_size(program, limits)


class AdapterStep(msgspec.Struct, frozen=True):
    """What the kernels need in steps of a bucket in which rows have adapters."""

    memory: AdapterMemory
    items: int
    """Address of what `llmd.api.adapter_items.pack_items` writes."""
    most_items: int


def _changes(context: Context, slotted: SlottedOp, op: Adapt, tables: Mapping[int, Table]) -> bytes:
    """Return what each adapter changes of each value of an op: `ChangeArgs` ``[adapters, values]``."""
    changes = (ChangeArgs * (op.num_adapters * len(op.outs)))()
    for adapter in range(op.num_adapters):
        first = 0
        for value, factors in enumerate(op.factors):
            low_rank, place = factors[adapter], 2 * (value * op.num_adapters + adapter)
            if low_rank is None:
                continue
            a, b = (tables[index or 0] for index in slotted.weights[place : place + 2])
            out = slotted.outputs[value]
            changes[adapter * len(op.outs) + value] = ChangeArgs(
                a.pointer,
                b.pointer,
                context.slot(out),
                low_rank.scale,
                FORMATS[a.format],
                FORMATS[b.format],
                low_rank.rank,
                context.program.slot_widths[out],
                first,
            )
            first += low_rank.rank
    return bytes(changes)
