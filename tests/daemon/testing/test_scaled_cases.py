from __future__ import annotations

from llmd.api import SCALED_FORMATS, SCALED_GROUPS
from llmd.api.ops import FACTOR_OPS
from llmd.testing.scaled_cases import scaled_cases


def test_every_scaled_format_has_a_case_of_each_op_that_multiplies() -> None:
    for name in SCALED_FORMATS:
        cases = [case for case in scaled_cases() if case.format == name]
        assert {op.kind for case in cases for op in case.ops} >= {*FACTOR_OPS, "embed"}


def test_rows_end_in_short_groups() -> None:
    for name, size in SCALED_GROUPS.items():
        cases = [case for case in scaled_cases() if case.format == name and case.name.startswith("linear/")]
        refs = [ref for case in cases for ref in case.plan.tensor_refs() if ref.is_matrix]
        assert {ref.shape[-1] % size != 0 for ref in refs} == {True}
    assert any(
        case.format_of(op.kind, op.tensors[0]) == case.format
        for case in scaled_cases()
        for op in case.ops
        if op.tensors and op.tensors[0]
    )
