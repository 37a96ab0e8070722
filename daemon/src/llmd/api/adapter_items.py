"""The rows of a step that have adapters, grouped for devices that run the same kernels in every step.

Such a device has kernels for steps in which rows have adapters, and others for steps in which none has.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from llmd.api.adapter_ops import Adapt
from llmd.api.device import StageLimits
from llmd.api.program import Instruction, Program, SlottedOp
from llmd.api.step import Int32, Step

ROWS = 8
"""Most rows of an item."""

ITEM = 4
"""Integers of an item."""


def adapt_ops(program: Program) -> Iterator[tuple[SlottedOp, Adapt]]:
    """Yield the ops of a program that apply adapters."""
    for slotted in program.ops:
        if isinstance(slotted.op, Adapt):
            yield slotted, slotted.op


def ranks_of(op: Adapt) -> list[list[int]]:
    """Return the ranks of what each adapter changes."""
    return [
        [one.rank for of_value in op.factors if (one := of_value[adapter])]
        for adapter in range(op.num_adapters)
    ]


def num_ranks(op: Adapt) -> int:
    """Return the most ranks of an adapter, those of all values together."""
    return max(map(sum, ranks_of(op)))


def without_adapters(instruction: Instruction) -> Instruction:
    """Return an instruction without the ops that do nothing in a step in which no row has an adapter."""
    kept = tuple(one for one in instruction.ops if not _stays(one))
    return instruction if kept == instruction.ops else msgspec.structs.replace(instruction, ops=kept)


def _stays(slotted: SlottedOp) -> bool:
    """Return whether an op changes values in their slots, so that those without an adapter stay there."""
    return isinstance(slotted.op, Adapt) and slotted.inputs[1:] == slotted.outputs


def has_adapters(program: Program, step: Step) -> bool:
    """Return whether a row of a step has an adapter that the program applies."""
    named = step.adapters is not None and bool((step.adapters >= 0).any())
    return named and applies_adapters(program)


def applies_adapters(program: Program) -> bool:
    """Return whether a program has ops that apply adapters."""
    return any(True for _ in adapt_ops(program))


def most_items(program: Program, limits: StageLimits) -> int:
    """Return the most items of a step: those of each adapter are full but for the last one."""
    adapters = max((op.num_adapters for _, op in adapt_ops(program)), default=0)
    in_step = min(adapters, limits.max_sequences, limits.max_rows)
    return (limits.max_rows + (ROWS - 1) * in_step) // ROWS if adapters else 0


def middle_size(program: Program, limits: StageLimits) -> int:
    """Return the elements between both matrices of the rows of all items, for the op with most ranks."""
    ranks = max((num_ranks(op) for _, op in adapt_ops(program)), default=0)
    return most_items(program, limits) * ROWS * ranks


def num_ints(program: Program, limits: StageLimits) -> int:
    """Return the integers of the items and the rows of a step; 0 for a program without adapters."""
    items = most_items(program, limits)
    return ITEM * items + limits.max_rows if items else 0


def pack_items(out: Int32, step: Step, most: int) -> None:
    """Write the items of a step, of at most ``most``, and then the rows that have adapters, by adapter.

    An item is (adapter, first of its rows among these, number of its rows, 0). No item, 0 rows: the caller
    sets ``out`` to 0 before.
    """
    assert step.adapters is not None, "has_adapters says so"
    of_rows = np.repeat(step.adapters, np.diff(step.row_offsets))
    rows = np.flatnonzero(of_rows >= 0)
    rows = rows[np.argsort(of_rows[rows], kind="stable")]
    items = []
    first = 0
    for adapter, count in zip(*np.unique(of_rows[rows], return_counts=True), strict=True):
        items += [(adapter, first + at, min(ROWS, count - at), 0) for at in range(0, count, ROWS)]
        first += count
    out[: ITEM * len(items)] = np.array(items, np.int32).reshape(-1)
    out[ITEM * most :][: len(rows)] = rows
