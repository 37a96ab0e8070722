"""The conformance suite: every op, every part and whole programs against the reference, and row exactness.

A backend, ours or an outsider's, is done when this passes; nothing else defines "done".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from llmd.api import INTEGER_FORMATS, KV_DTYPES, OP_KINDS, Device, DeviceInfo, KVDtype
from llmd.api.candidates import OutputRows
from llmd.api.checks import refusals
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.format_cases import format_cases
from llmd.testing.op_cases import op_cases
from llmd.testing.program_cases import part_cases, program_cases
from llmd.testing.workload import (
    LoadedWorkload,
    Outcome,
    Place,
    Workload,
    all_at_once,
    edge_places,
    edges_alone,
    lower_range,
    make_masks,
    make_selection,
    ragged,
    run,
)

PLAIN_KV: tuple[KVDtype, ...] = ("f32", "f16")
"""How every device can keep keys and values."""

_SUMS = {"raw_logsumexp", "edited_logsumexp", "edited_entropy", "edited_deviation"}
"""What a device sums up over a row, in an order of its own."""


class CaseResult(msgspec.Struct, frozen=True):
    """``problem`` is empty where the case passed; ``nmse`` is against the reference, None for exactness cases."""

    name: str
    nmse: float | None
    problem: str = ""


def all_cases() -> tuple[Workload, ...]:
    """Return every workload of the suite."""
    return (*op_cases(), *part_cases(), *program_cases(), *format_cases())


def cases_for(info: DeviceInfo) -> tuple[Workload, ...]:
    """Return the workloads that a device must pass: all but those of what it need not have and does not claim.

    Every device has plain formats, and keeps keys and values in `PLAIN_KV`.
    """
    return tuple(case for case in all_cases() if _is_claimed(info, case))


def _is_claimed(info: DeviceInfo, case: Workload) -> bool:
    if not {op.kind for op in case.ops} <= set(info.ops):
        return False
    if case.kv_dtype not in {*PLAIN_KV, *info.kv_dtypes}:
        return False
    if case.format not in INTEGER_FORMATS:
        return True
    multiplies = case.format in info.formats and case.activations in info.activations
    return multiplies and set(case.integer_ops) <= set(info.integer_ops)


def unclaimed(info: DeviceInfo) -> dict[str, tuple[str, ...]]:
    """Return what a device need not have, does not claim and is not tried with, by the fields of `DeviceInfo`."""
    left_out = {
        "ops": tuple(kind for kind in OP_KINDS if kind not in info.ops),
        "kv_dtypes": tuple(dtype for dtype in KV_DTYPES if dtype not in {*PLAIN_KV, *info.kv_dtypes}),
        "formats": tuple(name for name in INTEGER_FORMATS if name not in info.formats),
    }
    return {field: names for field, names in left_out.items() if names}


def check_device(device: Device, cases: tuple[Workload, ...] | None = None) -> Iterator[CaseResult]:
    """Yield the result of each case, by default of all that it must pass."""
    for workload in cases_for(device.info) if cases is None else cases:
        yield from check_case(device, workload)


def check_case(device: Device, workload: Workload, expected: Outcome | None = None) -> Iterator[CaseResult]:
    """Yield the results of one case: accuracy first, then, where the device claims it, row exactness.

    ``expected`` is the `reference_outcome` of the case, which several devices may share.
    """
    missing = _unsupported(device, workload)
    if missing:
        yield CaseResult(workload.name, None, missing)
        return
    yield check_accuracy(device, workload, expected)
    if device.info.row_exact:
        yield from check_exactness(device, workload)


def reference_outcome(workload: Workload) -> Outcome:
    """Return what the reference makes of the ragged schedule that accuracy is checked with."""
    return run(ReferenceDevice(), workload, ragged(workload))


def check_accuracy(device: Device, workload: Workload, expected: Outcome | None = None) -> CaseResult:
    """Compare rows and candidates of a ragged schedule with the reference."""
    mine = run(device, workload, ragged(workload))
    error = nmse(mine, expected or reference_outcome(workload))
    problem = "" if error <= workload.max_nmse else f"NMSE {error:.2e} is above {workload.max_nmse:.0e}"
    return CaseResult(workload.name, error, problem or _compare_candidates(mine, workload))


def check_exactness(device: Device, workload: Workload) -> Iterator[CaseResult]:
    """Compare rows bit by bit, however they are batched, chunked, placed and split over stages.

    All rows in one step are what others are compared with: rows at the edges of blocks alone, all rows in ragged steps.
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
    """The result of comparing some places, by default all."""
    different = _different_rows(mine, expected, sorted(expected.rows) if places is None else places)
    problem = (
        f"{len(different)} rows differ from those of one step, first {different[0]}" if different else ""
    )
    return CaseResult(name, None, problem)


def nmse(mine: Outcome, expected: Outcome) -> float:
    """Squared error over squared reference, all rows together."""
    places = sorted(expected.rows)
    a = np.array([mine.rows[p] for p in places], np.float64)
    b = np.array([expected.rows[p] for p in places], np.float64)
    return float(np.sum((a - b) ** 2) / max(float(np.sum(b**2)), 1e-300))


def _different_rows(mine: Outcome, expected: Outcome, places: Sequence[Place]) -> list[Place]:
    def same(place: tuple[int, int]) -> bool:
        if not np.array_equal(mine.rows[place], expected.rows[place], equal_nan=True):
            return False
        pairs = zip(mine.picked.get(place, ()), expected.picked.get(place, ()), strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    return [place for place in places if not same(place)]


def _unsupported(device: Device, workload: Workload) -> str:
    if workload.format not in device.info.formats:
        return f"the device has no format {workload.format}"
    if workload.kv_dtype not in device.info.kv_dtypes:
        return f"the device keeps no KV as {workload.kv_dtype}"
    program = lower_range(device, workload, workload.first_part, workload.last_part)
    return "; ".join(f"{refusal.what}: {refusal.reason}" for refusal in refusals(device, program))


def _compare_candidates(outcome: Outcome, workload: Workload) -> str:
    """Check the candidates against the device's own full rows: they are a reduction, so they agree exactly."""
    if not workload.has_head:
        return ""
    places = sorted(outcome.rows)
    raw = np.array([outcome.rows[p] for p in places])
    kept = len(outcome.picked[places[0]][0])
    expected = OutputRows(raw, make_selection(workload, places), kept)
    if workload.masks:
        expected.apply_masks(make_masks(workload, places))
    result = expected.result()
    for index, name in enumerate(type(result).__struct_fields__):
        mine = np.array([outcome.picked[p][index] for p in places])
        wanted = getattr(result, name)
        tolerance = 1e-5 if name in _SUMS else 0.0
        if not np.allclose(mine, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{name} does not follow from the logits"
    return ""
