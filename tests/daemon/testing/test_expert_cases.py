from __future__ import annotations

import msgspec
import numpy as np
import pytest

from llmd.api import Experts, Router
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.expert_cases import expert_cases, integer_case
from llmd.testing.runs import run
from llmd.testing.workload import all_at_once

CASES = {case.name: case for case in expert_cases()}


def test_cases_have_routers_of_each_kind() -> None:
    routers = [op for case in CASES.values() for op in case.ops if isinstance(op, Router)]
    assert {op.score for op in routers} == {"softmax", "sigmoid", "sqrt_softplus"}
    assert {op.group_score for op in routers if op.groups > 1} == {"largest", "sum_of_two"}
    assert {op.normalized for op in routers} == {True, False}
    for field in ("bias", "correction", "gains"):
        assert any(getattr(op, field) is not None for op in routers)


def test_some_experts_have_no_row_and_some_rows_use_all() -> None:
    mixtures = [op for case in CASES.values() for op in case.ops if isinstance(op, Experts)]
    rows = sum(map(len, CASES["experts/few-of-many"].tokens))
    assert any(op.top_k * rows < op.num_experts for op in mixtures)
    assert any(op.top_k == op.num_experts for op in mixtures)


@pytest.mark.parametrize("name", ["router/groups", "experts/limit"])
def test_an_option_that_is_left_out_changes_the_results(name: str) -> None:
    case = CASES[name]
    (part,) = (part for part in case.plan.parts if part.name == "tested")
    plain = [_without_options(op) for op in part.ops]
    assert plain != list(part.ops)
    parts = tuple(
        msgspec.structs.replace(one, ops=tuple(plain)) if one.name == "tested" else one
        for one in case.plan.parts
    )
    other = msgspec.structs.replace(case, plan=msgspec.structs.replace(case.plan, parts=parts))
    found, expected = (run(ReferenceDevice(), one, all_at_once(one)) for one in (other, case))
    error = sum(float(np.sum((found.rows[place] - row) ** 2)) for place, row in expected.rows.items())
    assert error > 1e-3


def _without_options(op: object) -> object:
    if isinstance(op, Router):
        return msgspec.structs.replace(op, groups=1, top_groups=1)
    if isinstance(op, Experts):
        return msgspec.structs.replace(op, limit=None)
    return op


def test_an_integer_case_has_experts_in_its_format() -> None:
    case = integer_case("q4_g32", 100, 72)
    (experts,) = (op for op in case.ops if isinstance(op, Experts))
    assert case.format_of("experts", experts.up) == "q4_g32"
    (router,) = (op for op in case.ops if isinstance(op, Router))
    assert case.format_of("router", router.weight) == "f32"
