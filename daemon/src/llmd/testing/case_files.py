"""Conformance cases as files, for kernels that Python cannot call: other instruction sets, sanitizer builds.

A file contains named arrays, little-endian:

    "LLMDCASE", number of arrays uint64, then for each array
        length of the name uint64, name in UTF-8, dtype (index in `DTYPES`) uint64, number of axes uint64,
        axes uint64…, zero padding to a multiple of 64 bytes from the start of the file, data

The names are paths:

- ``program/…`` is an encoded `Program`; ``program/arithmetic`` has the indices of its activations in
  `ACTIVATION_DTYPES` and of its precision in `PRECISIONS`.
- ``weights/<i>/<format>`` are plain weights. The matrices of a stack are one below the other, and
  ``weights/<i>/members`` is their number. A stack of vectors is one vector.
- ``weights/<i>/codes`` are integer weights, with ``…/integers``: bits, zero, group size, coarse size or 0,
  whether the weights are in int8, outliers per group, and the code book if there is one. If the format has
  them, there are also ``…/scales/coarse``, ``…/scales/fine``, ``…/minimums/coarse``, ``…/minimums/fine``,
  ``…/outliers/columns`` and ``…/outliers/residuals``. For a format of GGUF files, ``…/blocks`` are its
  blocks, and ``…/block_format`` is the name of the format in UTF-8.
- ``blocks`` are the pool sizes of the KV groups.
- ``schedules/<j>/limits`` and ``schedules/<j>/<k>/…`` are the steps of several schedules over the same rows:
  the arrays of each step, ``places`` ``[rows, 2]`` (the sequence and position of each row) and ``expected``,
  the reference's results for them.
- ``max_nmse`` bounds the error over all of schedule 0. The other schedules must give the same bits at the
  same places.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    ACTIVATION_DTYPES,
    INTEGER_FORMATS,
    KV_DTYPES,
    PRECISIONS,
    SCALED_FORMATS,
    GroupScales,
    Program,
    Selection,
    StageLimits,
    Step,
    WeightData,
    encode,
)
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.recorder import RecordedStep, Recorder
from llmd.testing.runs import run
from llmd.testing.workload import Outcome, Place, Workload, all_at_once, one_by_one, ragged

Arrays = dict[str, NDArray[np.generic]]

MAGIC = b"LLMDCASE"
DTYPES = ("float32", "float64", "int8", "uint16", "int32", "uint32", "int64", "bool", "uint8")
_ALIGNMENT = 64


def write_case(workload: Workload, path: Path) -> None:
    """Write a workload under three schedules, with the reference's results."""
    expected = run(ReferenceDevice(), workload, ragged(workload))
    arrays: Arrays = {"max_nmse": np.array([workload.max_nmse])}
    schedules = (ragged(workload), one_by_one(workload), all_at_once(workload))
    for j, schedule in enumerate(schedules):
        recorder = Recorder()
        run(recorder, workload, schedule)
        if j == 0:
            arrays |= _program_arrays(recorder.program)
            arrays |= _weight_arrays(recorder.program, recorder.weights)
            arrays |= _block_arrays(recorder.weights, recorder.stored_blocks)
            arrays["blocks"] = _int64([recorder.blocks.get(g.id, 0) for g in recorder.program.groups])
        arrays[f"schedules/{j}/limits"] = _limits(recorder.limits)
        for k, (recorded, places) in enumerate(
            zip(recorder.steps, _places_of_steps(schedule.steps), strict=True)
        ):
            under = f"schedules/{j}/{k}"
            arrays |= {f"{under}/{n}": a for n, a in _step_arrays(recorded, places, expected).items()}
    path.write_bytes(pack(arrays))


def pack(arrays: Arrays) -> bytes:
    """Return the bytes of a file with these arrays."""
    parts = bytearray(MAGIC + struct.pack("<Q", len(arrays)))
    for name, array in arrays.items():
        encoded = name.encode()
        head = struct.pack("<Q", len(encoded)) + encoded
        parts += head + struct.pack(
            f"<QQ{array.ndim}Q", DTYPES.index(array.dtype.name), array.ndim, *array.shape
        )
        parts += bytes(-len(parts) % _ALIGNMENT)
        parts += np.ascontiguousarray(array).tobytes()
    return bytes(parts)


def _program_arrays(program: Program) -> Arrays:
    encoded = encode(program)
    slots = [-1 if slot is None else slot for slot in (program.hidden_in, program.hidden_out)]
    sizes = (program.hidden_size, program.vocab_size, program.context_len)
    arrays: Arrays = {
        "program/sizes": _int64([*sizes, *slots, program.activations == "int8"]),
        "program/arithmetic": _int64(
            [ACTIVATION_DTYPES.index(program.activations), PRECISIONS.index(program.precision)]
        ),
        "program/slot_widths": _int64(program.slot_widths),
        "program/records": encoded.records,
        "program/floats": encoded.floats,
    }
    for group in program.groups:
        numbers = (
            len(group.layers), group.kv_heads, group.head_dim, group.window or 0, group.state_bytes,
            group.value_dim if group.kind == "latent" else 0, group.stride,
        )  # fmt: skip
        arrays[f"program/groups/{group.id}"] = _int64(numbers)
    for i, table in enumerate(program.ropes):
        arrays[f"program/ropes/{i}"] = np.array([table.factor, *table.inv_freq])
    return arrays


def _weight_arrays(program: Program, weights: Sequence[WeightData]) -> Arrays:
    arrays: Arrays = {}
    for i, weight in enumerate(weights):
        ref = program.weights[i].ref
        if ref.is_stack and ref.is_matrix:
            arrays[f"weights/{i}/members"] = _int64([ref.view_shape[0]])
        if weight.format in INTEGER_FORMATS:
            arrays |= _integer_arrays(f"weights/{i}", weight)
            continue
        if weight.format in SCALED_FORMATS:
            arrays |= _scaled_arrays(f"weights/{i}", weight)
            continue
        bits = np.uint16 if weight.format in {"f16", "bf16"} else weight.data.dtype
        plain = weight.data.view(bits)
        arrays[f"weights/{i}/{weight.format}"] = plain if ref.is_matrix else plain.reshape(-1)
    return arrays


def _block_arrays(weights: Sequence[WeightData], stored: Sequence[NDArray[np.uint8] | None]) -> Arrays:
    arrays: Arrays = {}
    for i, (weight, blocks) in enumerate(zip(weights, stored, strict=True)):
        if blocks is not None:
            name = np.frombuffer(weight.format.encode(), np.uint8)
            arrays |= {f"weights/{i}/blocks": blocks, f"weights/{i}/block_format": name}
    return arrays


def _scaled_arrays(under: str, weight: WeightData) -> Arrays:
    assert weight.scales is not None
    return {
        f"{under}/{weight.format}": weight.data,
        f"{under}/scales": weight.scales.coarse,
        f"{under}/group_size": _int64([weight.group_size]),
    }


def _integer_arrays(under: str, weight: WeightData) -> Arrays:
    form = INTEGER_FORMATS[weight.format]
    # A single scale per row is written as the same scale for each of its activation groups.
    group_size = weight.group_size if form.group_size else form.activation_group(weight.data.shape[1])
    numbers = (form.bits, form.zero, group_size, form.coarse_size, form.in_int8, form.outliers, *form.book)
    arrays: Arrays = {f"{under}/codes": weight.data, f"{under}/integers": _int64(numbers)}
    for name, scales in (("scales", weight.scales), ("minimums", weight.minimums)):
        if scales is not None:
            arrays |= _scale_arrays(f"{under}/{name}", scales)
    if weight.outliers is not None:
        arrays[f"{under}/outliers/columns"] = weight.outliers.columns
        arrays[f"{under}/outliers/residuals"] = weight.outliers.residuals
    return arrays


def _scale_arrays(under: str, scales: GroupScales) -> Arrays:
    coarse = scales.coarse.view(np.uint16) if scales.coarse.dtype == np.float16 else scales.coarse
    return {f"{under}/coarse": coarse} | ({} if scales.fine is None else {f"{under}/fine": scales.fine})


def _limits(limits: StageLimits) -> NDArray[np.int64]:
    numbers = (limits.max_rows, limits.max_sequences, limits.max_outputs, limits.num_candidates)
    return _int64([*numbers, KV_DTYPES.index(limits.kv_dtype)])


def _step_arrays(recorded: RecordedStep, places: list[Place], expected: Outcome) -> Arrays:
    arrays: Arrays = {
        **_fields(recorded.step, ("token_ids", "positions", "row_offsets", "copies")),
        **{f"block_tables/{i}": table for i, table in enumerate(recorded.step.block_tables)},
        "places": _int64(places),
        "expected": np.array([expected.rows[place] for place in places]),
    }
    if recorded.step.token_types is not None:
        arrays["token_types"] = recorded.step.token_types
    if recorded.step.adapters is not None:
        arrays["adapters"] = recorded.step.adapters
    if recorded.hidden is not None:
        arrays["hidden"] = recorded.hidden
    if recorded.selection is not None:
        names = [name for name in Selection.__struct_fields__ if name not in {"raw_top", "draws", "late"}]
        arrays |= {f"selection/{name}": array for name, array in _fields(recorded.selection, names).items()}
        arrays["selection/raw_top"] = _int64([recorded.selection.raw_top])
    if recorded.masks is not None:
        arrays["masks"] = recorded.masks
    return arrays


def _places_of_steps(steps: Sequence[Sequence[Place]]) -> list[list[Place]]:
    """Return the sequence and position of each row, for each step of a schedule."""
    lengths: dict[int, int] = {}
    places = []
    for step in steps:
        places.append([(s, lengths.get(s, 0) + i) for s, count in step for i in range(count)])
        for s, count in step:
            lengths[s] = lengths.get(s, 0) + count
    return places


def _fields(struct_: Step | Selection, names: Sequence[str]) -> Arrays:
    return {name: getattr(struct_, name) for name in names}


def _int64(values: Sequence[object]) -> NDArray[np.int64]:
    return np.array(values, np.int64)
