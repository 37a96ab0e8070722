"""The arrays of a step in device memory: packed on the host, copied at once, at fixed addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Program, Selection, StageLimits, Step
from llmd.api.adapter_items import has_adapters, most_items, num_ints, pack_items
from llmd.api.step import Int32
from llmd_backend_cuda.attention_plan import AttentionShape, plan_attention
from llmd_backend_cuda.context import StepArgs
from llmd_backend_cuda.runtime import Runtime

_COUNTS = 3
_POINTER = 2
_DESCRIPTION = 2
"""Integers that describe a block table: ``blocks_of`` in ``kernels/step.cuh``."""
_ALIGNMENT = 4
"""Arrays begin at multiples of 4 integers."""
_ADAPTERS = "adapters"


class StepMemory:
    """The arrays of the steps of a stage.

    Each bucket, a number of rows, has its own order of arrays, so that what is copied is not longer than the
    bucket needs. Counts, output rows and descriptions of block tables have the same place in all buckets.
    Block tables come last: they are as wide as the step needs, and their descriptions say where they are.

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
        self._arrays = runtime.allocate(self.num_bytes(program, limits, shapes))

    @staticmethod
    def num_bytes(program: Program, limits: StageLimits, shapes: Sequence[AttentionShape]) -> int:
        """Return the bytes of device memory that it takes."""
        arrays = _offsets(limits.max_rows, program, limits, shapes)["end"]
        tables = sum(limits.max_sequences * _widest_table(program, group) for group in _groups(program))
        return 4 * (arrays + tables)

    def args(self, bucket: int) -> StepArgs:
        """Return the addresses of a bucket."""
        at = self._offsets(bucket)
        return StepArgs(**{name: self._arrays.pointer + 4 * at[name] for name, _ in StepArgs._fields_})

    def table(self, group: int) -> int:
        """Return the address of the description of a KV group's block table."""
        return self._arrays.pointer + 4 * self._offsets(self._limits.max_rows)[_table_name(group)]

    def adapters(self, bucket: int) -> tuple[int, int]:
        """Return the address of the items of rows with adapters, and how many there is room for."""
        address = self._arrays.pointer + 4 * self._offsets(bucket)[_ADAPTERS]
        return address, most_items(self._program, _of_bucket(self._limits, bucket))

    def plan(self, bucket: int, shape: AttentionShape) -> int:
        """Return the address of the plan of attention ops of a shape."""
        at = self._offsets(bucket)
        return self._arrays.pointer + 4 * at[_plan_name(self._shapes.index(shape))]

    def most_items(self, bucket: int, shape: AttentionShape) -> int:
        """Return how many items there is room for in that plan."""
        return shape.most_items(_of_bucket(self._limits, bucket), self._program.context_len)

    def staging(self) -> Int32:
        """Return pinned memory from which the steps of one ticket are copied."""
        return self._runtime.pinned(self._arrays.num_bytes).view(np.int32)

    def upload(
        self, staging: Int32, bucket: int, step: Step, selection: Selection | None, fed: int = 0
    ) -> None:
        """Begin to copy a step to the device. The staging memory must not be in use by an earlier copy.

        ``fed`` is the address of the tokens that negative token ids stand for.
        """
        length = self._pack(staging, bucket, step, selection)
        _put(staging, self._offsets(bucket)["fed"], np.array([fed], np.uint64).view(np.int32))
        self._runtime.upload(self._arrays, 0, staging[:length])

    def _pack(self, out: Int32, bucket: int, step: Step, selection: Selection | None) -> int:
        """Write a step to ``out``, and return its length."""
        at = self._offsets(bucket)
        rows, sequences = step.num_rows, step.num_sequences
        outputs = 0 if selection is None else selection.num_rows
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
        if has_adapters(self._program, step):
            most = most_items(self._program, _of_bucket(self._limits, bucket))
            pack_items(out[at[_ADAPTERS] :], step, most)
        return self._pack_tables(out, at, self._pack_plans(out, bucket, step), step)

    def _pack_plans(self, out: Int32, bucket: int, step: Step) -> int:
        """Write the plans, and return where the last one ends."""
        at = self._offsets(bucket)
        end = at[_plan_name(0)]
        for number, shape in enumerate(self._shapes):
            first = at[_plan_name(number)]
            places = shape.num_places(_of_bucket(self._limits, bucket), self._program.context_len)
            end = first + plan_attention(shape, places, step.row_offsets, step.positions, out[first:])
        return end

    def _pack_tables(self, out: Int32, at: Mapping[str, int], first: int, step: Step) -> int:
        """Write block tables from ``first`` on, and their descriptions; return where the last one ends."""
        for group in _groups(self._program):
            table = step.block_tables[group][:, : _widest_table(self._program, group)]
            described = at[_table_name(group)]
            out[described : described + _DESCRIPTION] = first - described, table.shape[1]
            out[first : first + table.size].reshape(table.shape)[:] = table
            first += table.size
        return first


def _groups(program: Program) -> list[int]:
    """Return the KV groups that the program has layers of."""
    return [group.id for group in program.groups if group.layers]


def _widest_table(program: Program, group: int) -> int:
    """Return the most entries of a sequence in the block table of a KV group."""
    described = program.groups[group]
    return 2 if described.kind == "state" else -(-program.context_len // described.block_tokens)


def _of_bucket(limits: StageLimits, bucket: int) -> StageLimits:
    return msgspec.structs.replace(limits, max_rows=bucket)


def _plan_name(number: int) -> str:
    return f"plan {number}"


def _table_name(group: int) -> str:
    return f"table {group}"


def _offsets(
    bucket: int, program: Program, limits: StageLimits, shapes: Sequence[AttentionShape]
) -> Mapping[str, int]:
    """Return the place of each array of a bucket, in integers, and their end, where block tables begin."""
    sizes = (
        {"counts": _COUNTS, "output_rows": limits.max_outputs, "fed": _POINTER}
        | {_table_name(group): _DESCRIPTION for group in _groups(program)}
        | {
            "token_ids": bucket,
            "positions": bucket,
            "sequences": bucket,
            "token_types": bucket,
            "row_offsets": min(bucket, limits.max_sequences) + 1,
            _ADAPTERS: num_ints(program, _of_bucket(limits, bucket)),
        }
        | {
            _plan_name(number): shape.plan_ints(_of_bucket(limits, bucket), program.context_len)
            for number, shape in enumerate(shapes)
        }
    )
    sizes.setdefault(_plan_name(0), 0)
    offsets, end = {}, 0
    for name, size in sizes.items():
        offsets[name] = end
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets | {"end": end}


def _put(out: Int32, first: int, values: NDArray[np.integer]) -> None:
    out[first : first + values.size] = values
