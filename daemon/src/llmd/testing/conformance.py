"""The conformance suite: compares every op, part and whole program with the reference, and checks row
exactness.

A backend, ours or a third party's, is complete if and only if this passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    OP_KINDS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    Device,
    DeviceInfo,
    StepResult,
)
from llmd.api.candidates import OutputRows
from llmd.api.checks import refusals
from llmd.api.features import COMPUTED, KERNELS, SPANS
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.adapter_cases import adapter_cases
from llmd.testing.arithmetic_cases import cases_of_device
from llmd.testing.compressed_cases import compressed_cases
from llmd.testing.expert_cases import expert_cases
from llmd.testing.feeding import decode_twice
from llmd.testing.format_cases import format_cases
from llmd.testing.indexer_cases import indexer_cases
from llmd.testing.kernel_names import wrong_kernels
from llmd.testing.latent_cases import latent_cases
from llmd.testing.op_cases import op_cases
from llmd.testing.program_cases import part_cases, program_cases
from llmd.testing.runs import LoadedWorkload, lower_range, run
from llmd.testing.scaled_cases import scaled_cases
from llmd.testing.selections import (
    defined_fields,
    make_late_edits,
    make_masks,
    make_selection,
    masked_places,
)
from llmd.testing.state_cases import state_cases
from llmd.testing.step_times import wrong_times
from llmd.testing.stream_cases import stream_cases
from llmd.testing.time_mix_cases import time_mix_cases
from llmd.testing.workload import Outcome, Place, Workload, all_at_once, edge_places, edges_alone, ragged

_SUMS = {"raw_logsumexp", "edited_logsumexp", "edited_entropy", "edited_deviation"}
"""Sums over a row, which a device may compute in any order."""


class CaseResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    nmse: float | None
    """Error against the reference; None for exactness checks."""
    problem: str = ""
    """Empty if the check passed."""


def all_cases() -> tuple[Workload, ...]:
    """Return every workload of the suite, with activations in int8 and precision f32."""
    of_states = (*state_cases(), *time_mix_cases())
    of_latents = (*latent_cases(), *indexer_cases(), *compressed_cases())
    of_ops = (*op_cases(), *of_states, *expert_cases(), *of_latents, *stream_cases(), *adapter_cases())
    return (*of_ops, *part_cases(), *program_cases(), *format_cases(), *scaled_cases())


def cases_for(info: DeviceInfo, cases: tuple[Workload, ...] | None = None) -> tuple[Workload, ...]:
    """Return the workloads that a device must pass: those with ops, formats, KV dtypes and arithmetic that it
    claims, by default of `all_cases`.

    Plain formats are not optional, nor is a KV dtype, if the device computes attention.
    """
    tried = cases_of_device(info, all_cases() if cases is None else cases)
    return tuple(case for case in tried if _is_claimed(info, case))


def _is_claimed(info: DeviceInfo, case: Workload) -> bool:
    if not {op.kind for op in case.ops} <= set(info.ops):
        return False
    if case.kv_is_tested and case.kv_dtype not in info.kv_dtypes:
        return False
    if not case.features <= set(info.features):
        return False
    if case.format in PLAIN_FORMATS:
        return True
    rounds = case.format in INTEGER_FORMATS
    multiplies = case.format in info.formats and (not rounds or case.activations in info.activations)
    return multiplies and set(case.integer_ops) <= set(info.integer_ops)


def unclaimed(info: DeviceInfo) -> dict[str, tuple[str, ...]]:
    """Return the optional features that a device does not claim, by field of `DeviceInfo`; they are not
    tested.
    """
    left_out = {
        "ops": tuple(kind for kind in OP_KINDS if kind not in info.ops),
        "kv_dtypes": tuple(dtype for dtype in KV_DTYPES if dtype not in info.kv_dtypes),
        "features": tuple(name for name in COMPUTED if name not in info.features),
        "formats": tuple(name for name in (*INTEGER_FORMATS, *SCALED_FORMATS) if name not in info.formats),
    }
    return {field: names for field, names in left_out.items() if names}


def check_device(device: Device, cases: tuple[Workload, ...] | None = None) -> Iterator[CaseResult]:
    """Yield the results of the cases, by default of all that the device must pass."""
    for workload in cases_for(device.info) if cases is None else cases:
        yield from check_case(device, workload)


def check_case(device: Device, workload: Workload, expected: Outcome | None = None) -> Iterator[CaseResult]:
    """Yield the results of one case: accuracy, then what else it tests and the device claims.

    ``expected`` is the `reference_outcome` of the case, which can be reused for several devices.
    """
    missing = _unsupported(device, workload)
    if missing:
        yield CaseResult(workload.name, None, missing)
        return
    yield check_accuracy(device, workload, expected)
    if workload.draws and workload.first_part == 0:
        yield check_feeding(device, workload)
    if workload.times_steps and SPANS in device.info.features:
        yield CaseResult(f"{workload.name} times of steps", None, wrong_times(device, workload))
    if workload.times_steps and KERNELS in device.info.features:
        yield CaseResult(f"{workload.name} kernels", None, wrong_kernels(device, workload))
    if device.info.row_exact:
        yield from check_exactness(device, workload)


def reference_outcome(workload: Workload) -> Outcome:
    """Return the reference's outcome for the ragged schedule of the accuracy check."""
    return run(ReferenceDevice(), workload, ragged(workload))


def check_accuracy(device: Device, workload: Workload, expected: Outcome | None = None) -> CaseResult:
    """Compare the rows of a ragged schedule with the reference, and check the candidates."""
    mine = run(device, workload, ragged(workload))
    error = nmse(mine, expected or reference_outcome(workload))
    problem = "" if error <= workload.max_nmse else f"NMSE {error:.2e} is above {workload.max_nmse:.0e}"
    return CaseResult(workload.name, error, problem or _compare_candidates(mine, workload))


def check_feeding(device: Device, workload: Workload) -> CaseResult:
    """Check that a step takes the tokens that the device drew in the step before it."""
    fed, passed_on = decode_twice(device, workload)
    error = float(np.sum((fed - passed_on) ** 2, dtype=np.float64) / np.sum(passed_on**2, dtype=np.float64))
    problem = "" if error <= workload.max_nmse else f"NMSE {error:.2e} is above {workload.max_nmse:.0e}"
    return CaseResult(f"{workload.name} fed by the device", error, problem)


def check_exactness(device: Device, workload: Workload) -> Iterator[CaseResult]:
    """Check that rows have the same bits however they are batched, chunked, placed and split over stages.

    The result of one step with all rows is compared with block-edge rows run alone, and with ragged steps.
    """
    with LoadedWorkload(device, workload) as loaded:
        expected = loaded.run(all_at_once(workload))
        alone = loaded.run(edges_alone(workload))
        yield _compared(f"{workload.name} exact alone", alone, expected, edge_places(workload))
        yield _compared(
            f"{workload.name} exact in ragged steps", loaded.run(ragged(workload, seed=4)), expected
        )
    count = workload.last_part - workload.first_part
    if count > 1:
        cuts = (workload.first_part + count // 3, workload.first_part + 2 * count // 3)
        with LoadedWorkload(device, workload, cuts) as loaded:
            split = loaded.run(ragged(workload, seed=5, cuts=cuts))
        yield _compared(f"{workload.name} exact in three stages", split, expected)


def _compared(
    name: str, mine: Outcome, expected: Outcome, places: Sequence[Place] | None = None
) -> CaseResult:
    """Compare some places, by default all."""
    different = _different_rows(mine, expected, sorted(expected.rows) if places is None else places)
    problem = (
        f"{len(different)} rows differ from those of one step, first {different[0]}" if different else ""
    )
    return CaseResult(name, None, problem)


def nmse(mine: Outcome, expected: Outcome) -> float:
    """Return the squared error over the squared reference, for all rows together."""
    places = sorted(expected.rows)
    a = np.array([mine.rows[p] for p in places], np.float64)
    b = np.array([expected.rows[p] for p in places], np.float64)
    return float(np.sum((a - b) ** 2) / max(float(np.sum(b**2)), 1e-300))


def _different_rows(mine: Outcome, expected: Outcome, places: Sequence[Place]) -> list[Place]:
    def same(place: tuple[int, int]) -> bool:
        if not np.array_equal(mine.rows[place], expected.rows[place], equal_nan=True):
            return False
        found, wanted = mine.picked.get(place, {}), expected.picked.get(place, {})
        return found.keys() == wanted.keys() and all(
            np.array_equal(found[name], wanted[name], equal_nan=wanted[name].dtype.kind == "f")
            for name in wanted
        )

    return [place for place in places if not same(place)]


def _unsupported(device: Device, workload: Workload) -> str:
    if workload.format not in device.info.formats:
        return f"the device has no format {workload.format}"
    if workload.keeps_keys and workload.kv_dtype not in device.info.kv_dtypes:
        return f"the device does not support KV dtype {workload.kv_dtype}"
    program = lower_range(device, workload, workload.first_part, workload.last_part)
    return "; ".join(f"{refusal.what}: {refusal.reason}" for refusal in refusals(device, program))


def _compare_candidates(outcome: Outcome, workload: Workload) -> str:
    """Check the candidates against the device's own full rows: a reduction must match exactly."""
    if not workload.has_head:
        return ""
    places = sorted(outcome.rows)
    raw = np.array([outcome.rows[p] for p in places])
    kept = next(len(picked["ids"]) for picked in outcome.picked.values() if "ids" in picked)
    selection = make_selection(workload, places)
    expected = OutputRows(raw, selection, kept)
    if selection.late is not None and selection.late.any():
        expected.apply_edits(make_late_edits(workload, places))
    if masked := masked_places(selection, places):
        expected.apply_masks(make_masks(workload, masked))
    result = expected.result()
    fields = [defined_fields(result, selection, row) for row in range(len(places))]
    for name in StepResult.__struct_fields__:
        rows = [row for row in range(len(places)) if name in fields[row]]
        picked = [outcome.picked[places[row]] for row in rows]
        if any(name not in found for found in picked):
            return f"{name} is missing"
        mine, wanted = [found[name] for found in picked], [fields[row][name] for row in rows]
        tolerance = 1e-5 if name in _SUMS else 0.0
        if not np.allclose(mine, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{name} does not follow from the logits"
    return ""
