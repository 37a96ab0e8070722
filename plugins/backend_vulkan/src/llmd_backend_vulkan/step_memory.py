"""The arrays of a step: packed by the host, and copied into the device's own memory at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, Program, Selection, StageLimits, Step
from llmd_backend_vulkan.commands import Words

COUNTS = 4
"""Words of the numbers of rows, sequences and output rows; the last is 0."""

_ALIGNMENT = 4


class StepLayout(msgspec.Struct, frozen=True):
    """Where the arrays of the steps of a bucket are, in words from the beginning.

    Counts and output rows have the same place in all buckets.
    """

    bucket: int
    """Most rows."""
    places: Mapping[str, int]
    end: int
    """Words of all arrays."""

    @classmethod
    def of(cls, program: Program, limits: StageLimits, bucket: int) -> StepLayout:
        """Return the layout of a bucket."""
        sequences = min(bucket, limits.max_sequences)
        sizes = {
            "counts": COUNTS,
            "output_rows": limits.max_outputs,
            "token_ids": bucket,
            "positions": bucket,
            "sequences": bucket,
            "token_types": bucket,
            "row_offsets": sequences + 1,
            **{table_name(g.id): sequences * table_width(program, g.id) for g in program.groups if g.layers},
            **{rope_name(i): 2 * bucket * len(table.inv_freq) for i, table in enumerate(program.ropes)},
        }
        places, end = {}, 0
        for name, size in sizes.items():
            places[name] = end
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        return cls(bucket, places, end)


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
    out[: at["output_rows"]] = 0
    out[:3] = step.num_rows, sequences, 0 if selection is None else selection.num_rows
    if selection is not None:
        _put(out, at["output_rows"], selection.rows)
    _put(out, at["token_ids"], step.token_ids)
    _put(out, at["positions"], step.positions)
    _put(out, at["sequences"], np.repeat(np.arange(sequences, dtype=np.int32), np.diff(step.row_offsets)))
    types = np.zeros(step.num_rows, np.int32) if step.token_types is None else step.token_types
    _put(out, at["token_types"], types)
    _put(out, at["row_offsets"], step.row_offsets)
    for group in program.groups:
        if group.layers:
            width = table_width(program, group.id)
            first = at[table_name(group.id)]
            rows = out[first : first + sequences * width].reshape(sequences, width)
            table = step.block_tables[group.id][:, :width]
            rows[:, : table.shape[1]] = (
                table.view(np.uint32) if table.flags.c_contiguous else table.astype(np.uint32)
            )
    for number, rope in enumerate(program.ropes):
        _put(out, at[rope_name(number)], rotations(rope.inv_freq, rope.factor, step.positions))


def rotations(
    inv_freq: tuple[float, ...], factor: float, positions: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return cosine and sine of each row and pair, times a factor: float32 ``[rows, pairs, 2]``.

    They are computed in float64, which devices need not have.
    """
    angles = positions[:, None].astype(np.float64) * np.array(inv_freq, np.float64)
    turned = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * factor
    return cast("NDArray[np.float32]", turned.astype(np.float32))


def table_width(program: Program, group: int) -> int:
    """Return the width of the block table of a KV group; of a ``state`` group, 2 slots."""
    return 2 if program.groups[group].kind == "state" else -(-program.context_len // BLOCK_LEN)


def table_name(group: int) -> str:
    """Return the name of a group's block table in `StepLayout.places`."""
    return f"table {group}"


def rope_name(rope: int) -> str:
    """Return the name of the rotations of a rope table in `StepLayout.places`."""
    return f"rope {rope}"


def _put(out: Words, first: int, values: NDArray[np.generic]) -> None:
    out[first : first + values.size] = np.ascontiguousarray(values).reshape(-1).view(np.uint32)
