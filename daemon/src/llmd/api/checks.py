"""Checks of programs and steps against the contract; backends call those of steps first in `Stage.submit`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.device import Device, DeviceInfo, HiddenRef, Refusal, StageLimits
from llmd.api.draws import HOST, NUM_COLUMNS, SAMPLED, Draws
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.program import Program
from llmd.api.step import MAX_RAW_TOP, Float32, LateEdits, Selection, Step
from llmd.api.tensors import PLAIN_FORMATS


def refusals(device: Device, program: Program) -> list[Refusal]:
    """Return all reasons why the device cannot run the program, from `DeviceInfo` and `Device.check`."""
    info = device.info
    described = (
        *missing_features(info, program),
        *missing_ops(info, program),
        *missing_activations(info, program),
        *misplaced_integers(info, program),
    )
    return [*described, *device.check(program)]


def missing_features(info: DeviceInfo, program: Program) -> list[Refusal]:
    """Return a refusal for each feature that the program needs and the device does not support."""
    missing = sorted(set(program.needs) - set(info.features))
    return [Refusal(f"feature {name}", "the device does not support it") for name in missing]


def missing_ops(info: DeviceInfo, program: Program) -> list[Refusal]:
    """Return a refusal for each kind of op in the program that the device does not support."""
    kinds = {slotted.op.kind for slotted in program.ops}
    return [Refusal(f"op {kind}", "the device does not compute it") for kind in sorted(kinds - set(info.ops))]


def missing_activations(info: DeviceInfo, program: Program) -> list[Refusal]:
    """Return a refusal for each type of activations in the program that the device does not support: that of
    integer weights, if there are any, and that of everything else.
    """
    missing = []
    integers = sorted({weight.format for weight in program.weights} & INTEGER_FORMATS.keys())
    if integers and program.activations not in info.activations:
        reason = (
            f"with weights in {', '.join(integers)} the device computes with {', '.join(info.activations)}"
        )
        missing.append(Refusal(f"activations as {program.activations}", reason))
    if program.precision not in info.precisions:
        reason = f"with plain weights, keys and values the device computes with {', '.join(info.precisions)}"
        missing.append(Refusal(f"precision {program.precision}", reason))
    return missing


def misplaced_integers(info: DeviceInfo, program: Program) -> list[Refusal]:
    """Return a refusal for each integer or scaled weight that the device needs in a plain format."""
    refused = []
    for slotted in program.ops:
        for place, index in enumerate(slotted.weights):
            is_matrix = slotted.op.kind in info.integer_ops and place % 2 == 0  # biases have odd indices
            if index is not None and not is_matrix and program.weights[index].format not in PLAIN_FORMATS:
                weight = program.weights[index]
                what = f"format {weight.format} of {weight.ref.name}"
                refused.append(Refusal(what, f"{slotted.op.kind} reads it as plain numbers"))
    return refused


def check_submit(
    program: Program,
    blocks: Mapping[int, int],
    limits: StageLimits,
    step: Step,
    hidden: HiddenRef | None,
    selection: Selection | None,
) -> None:
    """Check all arguments of `Stage.submit`; ``blocks`` are the pool sizes of the stage.

    Raises:
        ValueError: what is wrong, with the values.
    """
    check_ends(program, hidden, selection)
    check_step(program, blocks, limits, step)
    if hidden is not None:
        check_hidden(program, step, hidden.host())
    if selection is not None:
        check_selection(program, limits, step, selection)


def check_ends(program: Program, hidden: HiddenRef | None, selection: Selection | None) -> None:
    """Check that hidden states and a selection are given if and only if the program needs them.

    Raises:
        ValueError: one is missing, or given although the program does not need it.
    """
    if (hidden is None) != (program.hidden_in is None):
        raise ValueError("hidden states are needed if and only if the program has no embedding")
    if (selection is None) == program.has_head:
        raise ValueError("a selection is needed if and only if the program ends with the head")


def check_step(program: Program, blocks: Mapping[int, int], limits: StageLimits, step: Step) -> None:
    """Check shapes, dtypes and ranges of a step; ``blocks`` are the pool sizes of the stage.

    Raises:
        ValueError: what is wrong, with the values.
    """
    rows, sequences = step.num_rows, step.num_sequences
    _check_array("token_ids", step.token_ids, np.int32, (rows,))
    _check_array("positions", step.positions, np.int32, (rows,))
    _check_array("row_offsets", step.row_offsets, np.int32, (sequences + 1,))
    if not 0 < rows <= limits.max_rows or not 0 < sequences <= limits.max_sequences:
        raise ValueError(
            f"the step has {rows} rows and {sequences} sequences; this stage takes"
            f" 1..{limits.max_rows} rows and 1..{limits.max_sequences} sequences"
        )
    offsets = step.row_offsets
    if offsets[0] != 0 or offsets[-1] != rows or np.any(np.diff(offsets) <= 0):
        raise ValueError(f"row_offsets {offsets.tolist()} do not split {rows} rows into non-empty sequences")
    _check_range("positions", step.positions, 0, program.context_len)
    if program.hidden_in is None:
        _check_range("token_ids", step.token_ids, -limits.max_outputs, program.vocab_size)
        if step.feed is None and np.any(step.token_ids < 0):
            raise ValueError("a negative token id needs a ticket in `feed`")
    if step.feed is not None and not (program.hidden_in is None and program.has_head):
        raise ValueError("only a stage with the embedding and the head can be fed from its own ticket")
    _check_consecutive(step)
    _check_tables(program, blocks, step)
    if step.token_types is not None:
        _check_array("token_types", step.token_types, np.int32, (rows,))
        if program.hidden_in is None:
            _check_range("token_types", step.token_types, 0, program.num_token_types)
    if step.adapters is not None:
        _check_array("adapters", step.adapters, np.int32, (sequences,))
        _check_range("adapters", step.adapters, -1, limits.max_adapters)


def check_hidden(program: Program, step: Step, hidden: Float32) -> None:
    """Check the hidden states that enter with a step.

    Raises:
        ValueError: what is wrong, with the values.
    """
    _check_array("hidden rows", hidden, np.float32, (step.num_rows, program.hidden_size))


def check_selection(program: Program, limits: StageLimits, step: Step, selection: Selection) -> None:
    """Check a selection against its step.

    Raises:
        ValueError: what is wrong, with the values.
    """
    count, edits = selection.num_rows, selection.edit_ids.shape[0]
    if not 0 <= count <= limits.max_outputs:
        raise ValueError(
            f"the selection has {count} output rows; this stage takes at most {limits.max_outputs}"
        )
    _check_array("rows", selection.rows, np.int32, (count,))
    _check_array("edit_offsets", selection.edit_offsets, np.int32, (count + 1,))
    _check_array("edit_ids", selection.edit_ids, np.int32, (edits,))
    _check_array("edit_factors", selection.edit_factors, np.float32, (edits,))
    _check_array("edit_biases", selection.edit_biases, np.float32, (edits,))
    _check_array("masked", selection.masked, np.bool_, (count,))
    _check_array("temperatures", selection.temperatures, np.float32, (count,))
    _check_array("targets", selection.targets, np.int32, (count,))
    _check_range("rows", selection.rows, 0, step.num_rows)
    _check_range("edit_ids", selection.edit_ids, 0, program.vocab_size)
    _check_range("targets", selection.targets, -1, program.vocab_size)
    _check_split("edit_offsets", selection.edit_offsets, edits)
    if np.any(np.diff(selection.rows) < 0):
        raise ValueError(f"rows {selection.rows.tolist()} are not ascending")
    if not np.all(selection.temperatures > 0):
        raise ValueError("temperatures must be above 0; a greedy row passes 1")
    if not 0 <= selection.raw_top <= MAX_RAW_TOP:
        raise ValueError(f"raw_top {selection.raw_top} is outside 0..{MAX_RAW_TOP}")
    if selection.late is not None:
        _check_array("late", selection.late, np.bool_, (count,))
        if np.any(np.diff(selection.edit_offsets)[selection.late]):
            raise ValueError("late rows have no edits in the selection")
    if selection.draws is not None:
        _check_draws(selection.draws, count)


def check_late_edits(vocab_size: int, selection: Selection, edits: LateEdits) -> None:
    """Check the edits of the late rows of a selection.

    Raises:
        ValueError: what is wrong, with the values.
    """
    rows = 0 if selection.late is None else int(np.count_nonzero(selection.late))
    count = edits.ids.shape[0]
    _check_array("offsets", edits.offsets, np.int32, (rows + 1,))
    _check_array("ids", edits.ids, np.int32, (count,))
    _check_array("factors", edits.factors, np.float32, (count,))
    _check_array("biases", edits.biases, np.float32, (count,))
    _check_range("ids", edits.ids, 0, vocab_size)
    _check_split("offsets", edits.offsets, count)


def _check_draws(draws: Draws, count: int) -> None:
    _check_array("kinds", draws.kinds, np.int8, (count,))
    _check_array("table", draws.table, np.float64, (count, NUM_COLUMNS))
    _check_array("seeds", draws.seeds, np.uint64, (count,))
    _check_array("draw positions", draws.positions, np.uint64, (count,))
    _check_array("choices", draws.choices, np.uint64, (count,))
    _check_array("token_only", draws.token_only, np.bool_, (count,))
    _check_range("kinds", draws.kinds, HOST, SAMPLED + 1)
    if np.any(draws.token_only & (draws.kinds == HOST)):
        raise ValueError("a row that the host draws needs more than its token")
    table = draws.table[draws.kinds == SAMPLED]
    temperatures, top_k, top_p, min_p = table[:, :2], table[:, 2], table[:, 3], table[:, 4:]
    if not (np.all(temperatures > 0) and np.all(top_k >= 1) and np.all(top_p > 0) and np.all(min_p <= 0)):
        raise ValueError(f"the table of draws has values out of range: {table.tolist()}")


def _check_split(name: str, offsets: NDArray[np.int32], count: int) -> None:
    if offsets[0] != 0 or offsets[-1] != count or np.any(np.diff(offsets) < 0):
        raise ValueError(f"{name} {offsets.tolist()} do not split {count} edits")


def _check_consecutive(step: Step) -> None:
    starts = step.row_offsets[1:-1]
    jumps = np.diff(step.positions) != 1
    jumps[starts - 1] = False
    if np.any(jumps):
        raise ValueError(f"positions {step.positions.tolist()} are not consecutive within each sequence")


def _check_tables(program: Program, blocks: Mapping[int, int], step: Step) -> None:
    if len(step.block_tables) != len(program.groups):
        raise ValueError(f"{len(step.block_tables)} block tables for {len(program.groups)} KV groups")
    last = step.positions[step.row_offsets[1:] - 1]
    first = step.positions[step.row_offsets[:-1]]
    for group, table in zip(program.groups, step.block_tables, strict=True):
        if not group.layers:
            continue
        if group.kind == "state":
            _check_slots(group.id, blocks[group.id], first, table)
            continue
        _check_array("block_tables", table, np.int32, (step.num_sequences, table.shape[-1]))
        seen_from = np.zeros_like(first) if group.window is None else np.maximum(0, first - group.window + 1)
        block_tokens = group.block_tokens
        if int(last.max()) // block_tokens >= table.shape[1]:
            raise ValueError(f"position {int(last.max())} is beyond a block table of {table.shape[1]} blocks")
        index = np.arange(table.shape[1])
        used = (index >= seen_from[:, None] // block_tokens) & (index <= last[:, None] // block_tokens)
        _check_range(f"block table of KV group {group.id}", table[used], 0, blocks[group.id])
    if step.copies.ndim != 2 or step.copies.shape[1] != 3 or step.copies.dtype != np.int32:
        raise ValueError(f"copies are {step.copies.dtype} {step.copies.shape}, expected int32 [n, 3]")
    for group_id, source, target in step.copies.tolist():
        if not 0 <= group_id < len(program.groups):
            raise ValueError(f"copies name KV group {group_id} of {len(program.groups)}")
        elsewhere = not program.groups[group_id].layers
        if not elsewhere and not (0 <= source < blocks[group_id] and 0 <= target < blocks[group_id]):
            raise ValueError(f"copy of block {source} to {target} in KV group {group_id} is out of range")


def _check_slots(group_id: int, num_slots: int, first: NDArray[np.int32], table: NDArray[np.int32]) -> None:
    """Check the slots ``[S, 2]`` that sequences read and write, from their first positions on."""
    _check_array("block_tables", table, np.int32, (len(first), 2))
    read, written = table.T
    _check_range(f"read slots of KV group {group_id}", read, -1, num_slots)
    _check_range(f"written slots of KV group {group_id}", written, 0, num_slots)
    if np.any((read < 0) != (first == 0)):
        raise ValueError(
            f"read slots {read.tolist()} for first positions {first.tolist()}: a sequence has no state"
            " if and only if it starts at position 0"
        )
    used = np.concatenate([written, read[read != written]])
    if np.any(np.bincount(used[used >= 0])[written] > 1):
        raise ValueError(
            f"slots {written.tolist()} of KV group {group_id} are written while another sequence uses them"
        )


def _check_array(
    name: str, array: NDArray[np.generic], dtype: type[np.generic], shape: tuple[int, ...]
) -> None:
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(
            f"{name} is {array.dtype} {array.shape}{'' if array.flags.c_contiguous else ' not contiguous'},"
            f" expected {np.dtype(dtype)} {shape}"
        )


def _check_range(name: str, values: NDArray[np.integer], first: int, last: int) -> None:
    if values.size and not (first <= int(values.min()) and int(values.max()) < last):
        raise ValueError(
            f"{name} reach {int(values.min())}..{int(values.max())}, allowed {first}..{last - 1}"
        )
