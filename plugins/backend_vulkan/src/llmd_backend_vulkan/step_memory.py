"""The arrays of a step: packed by the host, and copied into the device's own memory at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Program, Rope, Selection, StageLimits, Step
from llmd.api.adapter_items import ITEM, applies_adapters, has_adapters, most_items, num_ints, pack_items
from llmd_backend_vulkan.commands import Words

COUNTS = 4
"""Words of the numbers of rows, sequences and output rows, and of the words that the step takes."""

_DESCRIPTION = 2
"""Words that describe a block table: its distance from this description, and its width."""

_ALIGNMENT = 4


class StepLayout(msgspec.Struct, frozen=True):
    """Where the arrays of the steps of a bucket are, in words from the beginning.

    Counts, output rows and descriptions of block tables have the same place in all buckets. Block tables come
    last: they are as wide as the step needs, and their descriptions say where they are.
    """

    bucket: int
    """Most rows."""
    places: Mapping[str, int]
    tables: int
    """Where block tables begin."""
    end: int
    """Words of all arrays, with the widest tables."""
    most_items: int
    """Items of rows with adapters that there is room for."""

    @classmethod
    def of(cls, program: Program, limits: StageLimits, bucket: int) -> StepLayout:
        """Return the layout of a bucket."""
        sequences = min(bucket, limits.max_sequences)
        of_bucket = msgspec.structs.replace(limits, max_rows=bucket)
        sizes = {
            "counts": COUNTS,
            "output_rows": limits.max_outputs,
            **{table_name(group): _DESCRIPTION for group in _groups(program)},
            "token_ids": bucket,
            "positions": bucket,
            "sequences": bucket,
            "token_types": bucket,
            "row_offsets": sequences + 1,
            **({"adapters": num_ints(program, of_bucket)} if applies_adapters(program) else {}),
            **{seen_name(stride): bucket for stride in _strides(program)},
            **{
                rope_name(rope, stride): 2 * bucket * len(program.ropes[rope].inv_freq)
                for rope, stride in _turned(program)
            },
        }
        places, end = {}, 0
        for name, size in sizes.items():
            places[name] = end
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        widest = sum(sequences * _widest_table(program, group) for group in _groups(program))
        return cls(bucket, places, end, end + widest, most_items(program, of_bucket))


def pack_step(
    out: Words,
    layout: StepLayout,
    program: Program,
    step: Step,
    selection: Selection | None,
) -> None:
    """Write a step to the beginning of ``out``."""
    at = layout.places
    sequences = step.num_sequences
    out[:3] = step.num_rows, sequences, 0 if selection is None else selection.num_rows
    out[3] = _put_tables(out, layout, program, step)
    if selection is not None:
        _put(out, at["output_rows"], selection.rows)
    _put(out, at["token_ids"], step.token_ids)
    _put(out, at["positions"], step.positions)
    _put(out, at["sequences"], np.repeat(np.arange(sequences, dtype=np.int32), np.diff(step.row_offsets)))
    types = np.zeros(step.num_rows, np.int32) if step.token_types is None else step.token_types
    _put(out, at["token_types"], types)
    _put(out, at["row_offsets"], step.row_offsets)
    if has_adapters(program, step):
        items = out[at["adapters"] : at["adapters"] + ITEM * layout.most_items + step.num_rows].view(np.int32)
        items[: ITEM * layout.most_items] = 0
        pack_items(items, step, layout.most_items)
    for stride in _strides(program):
        _put(out, at[seen_name(stride)], last_seen(step.positions, stride))
    for number, stride in _turned(program):
        rope, positions = program.ropes[number], step.positions // stride * stride
        _put(out, at[rope_name(number, stride)], rotations(rope.inv_freq, rope.factor, positions))


def last_seen(positions: NDArray[np.int32], stride: int) -> NDArray[np.int32]:
    """Return the numbers of the last vectors that rows see in a KV group with a stride; -1: none.

    ``positions`` are those of tokens.
    """
    return (positions + 1) // stride - 1


def rotations(
    inv_freq: tuple[float, ...], factor: float, positions: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return cosine and sine of each row and pair, times a factor: float32 ``[rows, pairs, 2]``.

    They are computed in float64, which devices need not have.
    """
    frequencies = np.array(inv_freq, np.float64)
    turning = frequencies != 0.0  # most elements of a head may not
    angles = positions[:, None].astype(np.float64) * frequencies[turning]
    turned = np.tile([1.0, 0.0], (len(positions), len(frequencies), 1))
    turned[:, turning] = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return cast("NDArray[np.float32]", (turned * factor).astype(np.float32))


def _put_tables(out: Words, layout: StepLayout, program: Program, step: Step) -> int:
    """Write block tables and their descriptions; return where the last one ends."""
    first = layout.tables
    for group in _groups(program):
        table = step.block_tables[group][:, : _widest_table(program, group)]
        described = layout.places[table_name(group)]
        out[described : described + _DESCRIPTION] = first - described, table.shape[1]
        _put(out, first, table)
        first += table.size
    return first


def _groups(program: Program) -> list[int]:
    """Return the KV groups that the program has layers of."""
    return [group.id for group in program.groups if group.layers]


def _widest_table(program: Program, group: int) -> int:
    """Return the most entries of a sequence in the block table of a KV group; `state` groups have 2 slots."""
    of = program.groups[group]
    return 2 if of.kind == "state" else -(-program.context_len // of.block_tokens)


def _strides(program: Program) -> list[int]:
    """Return the strides other than 1 of the KV groups that the program has layers of."""
    return sorted({group.stride for group in program.groups if group.layers} - {1})


def _turned(program: Program) -> list[tuple[int, int]]:
    """Return the rope tables that ops read, each with the strides of these ops."""
    return sorted(
        {
            (slotted.rope, slotted.op.stride)
            for slotted in program.ops
            if isinstance(slotted.op, Rope) and slotted.rope is not None
        }
    )


def table_name(group: int) -> str:
    """Return the name of the description of a group's block table in `StepLayout.places`."""
    return f"table {group}"


def seen_name(stride: int) -> str:
    """Return the name of the last positions that rows see in a KV group, in `StepLayout.places`.

    They are those of tokens, or numbers of vectors if the group has a stride.
    """
    return "positions" if stride == 1 else f"seen {stride}"


def rope_name(rope: int, stride: int) -> str:
    """Return the name of the rotations of a rope table in `StepLayout.places`."""
    return f"rope {rope} {stride}"


def _put(out: Words, first: int, values: NDArray[np.generic]) -> None:
    out[first : first + values.size] = np.ascontiguousarray(values).reshape(-1).view(np.uint32)
