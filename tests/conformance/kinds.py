"""Which cases of the conformance suite run the same kernels of the CPU backend."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from llmd.api import INTEGER_FORMATS, SCALED_FORMATS
from llmd.testing.workload import Workload


def of_each_kind(cases: Iterable[Workload]) -> Sequence[Workload]:
    """Return the first case of each kind: they differ in ops, and in what decides which kernels run them."""
    kinds: dict[Hashable, Workload] = {}
    for case in cases:
        kinds.setdefault(_kind(case), case)
    return tuple(kinds.values())


def _kind(case: Workload) -> Hashable:
    integers = INTEGER_FORMATS.get(case.format)
    codes = integers and (
        integers.bits,
        integers.coarse_size > 0,
        bool(integers.book),
        integers.outliers > 0,
        case.activations,
    )
    scaled = case.format in SCALED_FORMATS
    keeps_codes = case.kv_dtype in {"int8", "int4"}
    ops = frozenset(op.kind for op in case.ops)
    return case.name.split("/")[0], ops, codes, scaled, keeps_codes, case.begun > 0, case.edits, case.masks
