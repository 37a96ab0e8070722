"""The cases of adapters reach what a backend can do wrong."""

from __future__ import annotations

from llmd.api import Adapt
from llmd.testing.adapter_cases import adapter_cases

CASES = tuple(adapter_cases())
OPS = [op for case in CASES for op in case.ops if isinstance(op, Adapt)]


def test_steps_have_rows_of_several_adapters_and_of_none() -> None:
    assert any(len(set(case.adapters)) == len(case.adapters) and -1 in case.adapters for case in CASES)
    assert any(set(case.adapters) == {-1} for case in CASES)


def test_ranks_differ_and_some_adapters_leave_a_value_as_it_is() -> None:
    assert any(len({one.rank for one in of_value if one}) > 1 for op in OPS for of_value in op.factors)
    assert any(None in of_value for op in OPS for of_value in op.factors)


def test_values_are_changed_in_place_or_kept() -> None:
    assert {op.values == op.outs for op in OPS} == {True, False}
