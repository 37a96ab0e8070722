"""Corrections of products by adapters, which each sequence of a step may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from llmd.api import Adapt, Program, SlottedOp, StageLimits
from llmd.api.adapter_items import ITEM, adapt_ops, middle_size, num_ranks
from llmd_backend_vulkan.commands import Buffer, Dispatch, Shader, Words
from llmd_backend_vulkan.context import Context, float_word
from llmd_backend_vulkan.matrices import DeviceMatrix
from llmd_backend_vulkan.memory import copy

MIDDLE = "rows between the matrices of adapters"
"""Name of scratch memory (``shaders/adapter.glsl``)."""
CHANGES = "changes by adapters"
"""Name of memory with the changes of all ops (`changes_of`)."""

MAX_BYTES = 1 << 26
"""Most bytes of a matrix: every device has buffers in which it is one piece."""

_CHANGE = 14
_THREADS = 64


def adapt(context: Context, slotted: SlottedOp) -> list[list[Dispatch]]:
    """Return the phases of the op: values that are read later as they were are copied, and changes added.

    In the context of a step in which no row has an adapter, only the former.
    """
    kept = [
        _copy(context, value, out)
        for value, out in zip(slotted.inputs[1:], slotted.outputs, strict=True)
        if value != out
    ]
    if not context.adapted:
        return [kept]
    widths = [context.program.slot_widths[out] for out in slotted.outputs]
    op = slotted.op
    assert isinstance(op, Adapt)
    return [
        [*kept, *_dispatches(context, slotted, "adapt_middle", 0, num_ranks(op))],
        list(_dispatches(context, slotted, "adapt_outputs", 1, sum(-(-w // _THREADS) for w in widths))),
    ]


def _copy(context: Context, value: int, out: int) -> Dispatch:
    words = context.rows * context.stride(out)
    return copy(context.work, context.slots[value], context.work, context.slots[out], words)


def _dispatches(
    context: Context, slotted: SlottedOp, name: str, matrix: int, groups: int
) -> Iterator[Dispatch]:
    """Yield a dispatch for each buffer and format of the matrices of all adapters: usually one.

    ``matrix`` is 0 for those that rows are multiplied by, and 1 for those after them.
    """
    op, x = slotted.op, slotted.inputs[0]
    assert isinstance(op, Adapt)
    items = context.place("adapters")
    most = context.layout.most_items
    constants = (
        items, items + ITEM * most, context.scratch[CHANGES] + context.changes[slotted], len(op.outs),
        context.slots[x], context.stride(x), context.program.slot_widths[x], context.scratch[MIDDLE], num_ranks(op),
    )  # fmt: skip
    found: dict[tuple[int, int], Buffer] = {}
    for index in slotted.weights[matrix::2]:
        if index is not None:
            stored = context.matrix(index)
            buffer = stored.pieces[0].region.buffer
            found[buffer.number, stored.form.bits] = buffer
    for (number, bits), buffer in found.items():
        shader = Shader(name, (bits,))
        yield Dispatch(shader, (context.work, buffer), (*constants, number), (groups, most, 1))


def adapt_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of the memory that the ops of a program need, by name."""
    return {
        MIDDLE: middle_size(program, limits),
        CHANGES: sum(map(_num_words, dict(adapt_ops(program)).values())),
    }


def change_places(program: Program) -> dict[SlottedOp, int]:
    """Return where the changes of each op are, in words of `changes_of`."""
    places, end = {}, 0
    for slotted, op in dict(adapt_ops(program)).items():
        places[slotted] = end
        end += _num_words(op)
    return places


def changes_of(context: Context) -> Words:
    """Return what each adapter changes of each value of each op, as ``shaders/adapter.glsl`` reads it."""
    changes = [
        _change(context, slotted, op, adapter, value)
        for slotted, op in dict(adapt_ops(context.program)).items()
        for adapter in range(op.num_adapters)
        for value in range(len(op.outs))
    ]
    return np.array(changes, np.uint32).reshape(-1)


def _num_words(op: Adapt) -> int:
    return _CHANGE * op.num_adapters * len(op.outs)


def _change(context: Context, slotted: SlottedOp, op: Adapt, adapter: int, value: int) -> Sequence[int]:
    """Return the rank, the place of its products among those of a row, both matrices, scale and output."""
    out = slotted.outputs[value]
    target = (context.slots[out], context.stride(out), context.program.slot_widths[out])
    low_rank, place = op.factors[value][adapter], 2 * (value * op.num_adapters + adapter)
    if low_rank is None:
        return (*[0] * (_CHANGE - len(target)), *target)
    before = (factors[adapter] for factors in op.factors[:value])
    first = sum(one.rank for one in before if one)
    a, b = (_stored(context.matrix(index)) for index in slotted.weights[place : place + 2])
    return (low_rank.rank, first, *a, *b, float_word(low_rank.scale), *target)


def _stored(matrix: DeviceMatrix) -> Sequence[int]:
    """Return the buffer of a matrix, its format, its place, and the words of a row."""
    (piece,) = matrix.pieces
    return (piece.region.buffer.number, matrix.form.bits, piece.low_at, matrix.row_words)
