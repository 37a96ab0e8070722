from __future__ import annotations

import pytest

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, Format
from llmd.models.lowering import lower
from llmd.testing.format_cases import format_cases


def test_every_integer_format_has_a_case_of_a_linear_op_and_of_a_head() -> None:
    names = {case.name for case in format_cases()}
    assert names >= {f"{kind}/{name}" for kind in ("linear", "head") for name in INTEGER_FORMATS}


@pytest.mark.parametrize("name", [name for name in OWN_FORMATS if not INTEGER_FORMATS[name].coarse_size])
def test_our_formats_have_rows_with_short_last_groups_and_without(name: Format) -> None:
    (case,) = (case for case in format_cases() if case.name == f"linear/{name}")
    lengths = {ref.shape[1] for ref in case.plan.tensor_refs() if len(ref.shape) == 2}
    size = INTEGER_FORMATS[name].group_size or 1
    assert any(length % 32 for length in lengths)
    assert any(length % size == 0 for length in lengths)


def test_every_integer_format_has_a_case_of_a_table() -> None:
    tables = {case.name: case for case in format_cases() if case.name.startswith("embed/")}
    tables = {name: case for name, case in tables.items() if not name.endswith("-columns")}
    assert set(tables) == {f"embed/{name}" for name in INTEGER_FORMATS}
    for case in tables.values():
        (ref,) = case.plan.tensor_refs()
        assert case.format_of("embed", ref) == case.format


def test_a_table_that_is_the_head_too_is_one_weight() -> None:
    tied = [case for case in format_cases() if case.name.endswith("-tied")]
    assert len(tied) == 2
    for case in tied:
        program = lower(case.plan, 0, len(case.plan.parts), format_of=case.format_of)
        first, last = program.instructions[0].ops[0], program.instructions[-1].ops[0]
        assert (first.op.kind, last.op.kind) == ("embed", "head")
        assert first.weights[0] == last.weights[0]


def test_whole_programs_run_a_format_of_every_kind() -> None:
    forms = [INTEGER_FORMATS[case.format] for case in format_cases() if case.name.startswith("program/")]
    assert {form.bits for form in forms} >= {2, 3, 4, 6, 8}
    assert {form.has_minimum for form in forms} == {bool(form.coarse_size) for form in forms} == {True, False}
    assert {bool(form.book) for form in forms} == {True, False}
