"""The cases of adapters reach what a backend can do wrong."""

from __future__ import annotations

import msgspec

from llmd.api import Adapt
from llmd.api.checks import missing_features, missing_ops
from llmd.builtin.reference.device import describe
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapted_model, adapter_cases

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


def test_a_device_without_adapters_refuses_a_model_with_them_by_name() -> None:
    plan, info = adapted_model(), describe()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    lacking = msgspec.structs.replace(
        info,
        ops=tuple(kind for kind in info.ops if kind != "adapt"),
        features=tuple(name for name in info.features if name != "adapters"),
    )
    refused = [*missing_features(lacking, program), *missing_ops(lacking, program)]
    assert [one.what for one in refused] == ["feature adapters", "op adapt"]
    assert not missing_features(info, program)
