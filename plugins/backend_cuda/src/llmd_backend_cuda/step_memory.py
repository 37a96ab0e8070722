"""The arrays of a step in device memory: packed on the host, copied at once, at fixed addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import BLOCK_LEN, Program, Selection, StageLimits, Step
from llmd.api.step import Int32
from llmd_backend_cuda.attention_plan import AttentionShape, plan_attention
from llmd_backend_cuda.context import StepArgs
from llmd_backend_cuda.runtime import Runtime

_COUNTS = 3
_ALIGNMENT = 4
"""Arrays begin at multiples of 4 integers."""


class StepMemory:
    """The arrays of the steps of a stage.

    Each bucket, a number of rows, has its own order of arrays, so that what is copied is not longer than the
    bucket needs. Counts, output rows and the tables of KV groups have the same place in all buckets.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self, runtime: Runtime, program: Program, limits: StageLimits, shapes: Sequence[AttentionShape]
    ) -> None:
        self._runtime = runtime
        self._program = program
        self._limits = limits
        self._shapes = tuple(shapes)
        self._offsets = cache(lambda bucket: _offsets(bucket, program, limits, shapes))
        self._arrays = runtime.allocate(4 * self._offsets(limits.max_rows)["end"])
        self._tables = {
            group.id: runtime.allocate(4 * max(1, limits.max_sequences * table_width(program, group.id)))
            for group in program.groups
            if group.layers
        }

    @staticmethod
    def num_bytes(program: Program, limits: StageLimits, shapes: Sequence[AttentionShape]) -> int:
        """Return the bytes of device memory that it takes."""
        arrays = _offsets(limits.max_rows, program, limits, shapes)["end"]
        tables = sum(limits.max_sequences * table_width(program, g.id) for g in program.groups if g.layers)
        return 4 * (arrays + tables)

    def args(self, bucket: int) -> StepArgs:
        """Return the addresses of a bucket."""
        at = self._offsets(bucket)
        return StepArgs(**{name: self._arrays.pointer + 4 * at[name] for name, _ in StepArgs._fields_})

    def table(self, group: int) -> int:
        """Return the address of the block table of a KV group."""
        return self._tables[group].pointer

    def plan(self, bucket: int, shape: AttentionShape) -> int:
        """Return the address of the plan of attention ops of a shape."""
        at = self._offsets(bucket)
        return self._arrays.pointer + 4 * at[_plan_name(self._shapes.index(shape))]

    def most_items(self, bucket: int, shape: AttentionShape) -> int:
        """Return how many items there is room for in that plan."""
        return shape.most_items(_of_bucket(self._limits, bucket), self._program.context_len)

    def staging(self) -> StepStaging:
        """Return pinned memory for one ticket."""
        widths = {group: memory.num_bytes // 4 for group, memory in self._tables.items()}
        return StepStaging(
            self._runtime.pinned(self._arrays.num_bytes).view(np.int32),
            {group: self._runtime.pinned(4 * count).view(np.int32) for group, count in widths.items()},
        )

    def upload(self, staging: StepStaging, bucket: int, step: Step, selection: Selection | None) -> None:
        """Begin to copy a step to the device. The staging memory must not be in use by an earlier copy."""
        length = self._pack(staging.arrays, bucket, step, selection)
        self._runtime.upload(self._arrays, 0, staging.arrays[:length])
        for group, memory in self._tables.items():
            table = step.block_tables[group]
            packed = staging.tables[group]
            width = table_width(self._program, group)
            rows = packed[: len(table) * width].reshape(len(table), width)
            rows[:, : table.shape[1]] = table[:, :width]
            self._runtime.upload(memory, 0, rows)

    def _pack(self, out: Int32, bucket: int, step: Step, selection: Selection | None) -> int:
        at = self._offsets(bucket)
        rows, sequences = step.num_rows, step.num_sequences
        outputs = 0 if selection is None else selection.num_rows
        end = at[_plan_name(0)]
        out[: at[_plan_name(0)]] = 0
        out[:_COUNTS] = rows, sequences, outputs
        _put(out, at["token_ids"], step.token_ids)
        _put(out, at["positions"], step.positions)
        _put(out, at["sequences"], np.repeat(np.arange(sequences), np.diff(step.row_offsets)))
        if step.token_types is not None:
            _put(out, at["token_types"], step.token_types)
        _put(out, at["row_offsets"], step.row_offsets)
        if selection is not None:
            _put(out, at["output_rows"], selection.rows)
        for number, shape in enumerate(self._shapes):
            first = at[_plan_name(number)]
            places = shape.num_places(_of_bucket(self._limits, bucket), self._program.context_len)
            length = plan_attention(shape, places, step.row_offsets, step.positions, out[first:])
            end = first + length
        return end


class StepStaging(msgspec.Struct, frozen=True):
    """Pinned memory from which the steps of a ticket are copied."""

    arrays: Int32
    tables: Mapping[int, Int32]
    """For each KV group."""


def table_width(program: Program, group: int) -> int:
    """Return the width of the block table of a KV group; of a ``state`` group, 2 slots."""
    return 2 if program.groups[group].kind == "state" else -(-program.context_len // BLOCK_LEN)


def _of_bucket(limits: StageLimits, bucket: int) -> StageLimits:
    return msgspec.structs.replace(limits, max_rows=bucket)


def _plan_name(number: int) -> str:
    return f"plan {number}"


def _offsets(
    bucket: int, program: Program, limits: StageLimits, shapes: Sequence[AttentionShape]
) -> Mapping[str, int]:
    """Return the place of each array of a bucket, in integers, and the end of the last one."""
    sizes = {
        "counts": _COUNTS,
        "output_rows": limits.max_outputs,
        "token_ids": bucket,
        "positions": bucket,
        "sequences": bucket,
        "token_types": bucket,
        "row_offsets": min(bucket, limits.max_sequences) + 1,
    } | {
        _plan_name(number): shape.plan_ints(_of_bucket(limits, bucket), program.context_len)
        for number, shape in enumerate(shapes)
    }
    sizes.setdefault(_plan_name(0), 0)
    offsets, end = {}, 0
    for name, size in sizes.items():
        offsets[name] = end
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets | {"end": end}


def _put(out: Int32, first: int, values: NDArray[np.integer]) -> None:
    out[first : first + values.size] = values
