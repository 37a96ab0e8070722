from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, KV_DTYPES, OP_KINDS, PLAIN_FORMATS, SCALED_FORMATS, DeviceInfo
from llmd.api.expert_ops import Experts, Router
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.arithmetic import Arithmetic
from llmd.testing.arithmetic_cases import (
    IN_EVERY_ARITHMETIC,
    cases_of_device,
    claimed_arithmetics,
    in_arithmetic,
)
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.conformance import all_cases, cases_for, reference_outcome
from llmd.testing.workload import Workload


def device(**claims: Any) -> DeviceInfo:
    return msgspec.structs.replace(ReferenceDevice().info, **claims)


CPU = device(activations=("int8", "f32"), precisions=("f32",))
HALVES = device(activations=("f16",), precisions=("f16",), kv_dtypes=("f16", "int8"))
PLAIN = device(activations=("int8",), precisions=("bf16", "f32"), formats=PLAIN_FORMATS)


def case(name: str) -> Workload:
    return next(case for case in all_cases() if case.name == name)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (CPU, [("int8", "f32"), ("f32", "f32")]),
        (HALVES, [("f16", "f16")]),
        (PLAIN, [("int8", "bf16"), ("bf16", "bf16"), ("f32", "f32")]),
        (device(activations=("f16", "bf16"), precisions=("f32",)), [("f16", "f16"), ("f32", "f32")]),
    ],
)
def test_the_first_arithmetic_is_the_devices_choice_and_the_others_have_a_claimed_precision(
    info: DeviceInfo, expected: list[tuple[str, str]]
) -> None:
    assert [(one.activations, one.precision) for one in claimed_arithmetics(info)] == expected


def test_cases_keep_names_and_bounds_in_int8_and_f32() -> None:
    cases = all_cases()
    assert cases_of_device(CPU, cases)[: len(cases)] == cases
    others = cases_of_device(CPU, cases)[len(cases) :]
    assert {one.name.removesuffix("-activations-f32") for one in others} <= IN_EVERY_ARITHMETIC
    assert {one.activations for one in others} == {"f32"}
    assert {one.max_nmse for one in others} == {1e-9}


def test_a_device_with_one_arithmetic_and_few_kv_dtypes_is_tried_with_all_else() -> None:
    cases = cases_for(HALVES)
    assert {(one.activations, one.precision) for one in cases} == {("f16", "f16")}
    assert {op.kind for one in cases for op in one.ops} == set(OP_KINDS)
    assert {one.format for one in cases} == {*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS}
    assert {one.kv_dtype for one in cases} == {"f16", "int8"}
    untried = {one.name for one in all_cases() if one.kv_is_tested and one.kv_dtype not in HALVES.kv_dtypes}
    assert len(cases) == len(all_cases()) - len(untried)


def test_plain_weights_are_tried_once_in_each_precision() -> None:
    found = [one.name for one in cases_for(PLAIN) if one.name.startswith("linear/bf16-precision-bf16")]
    assert found == ["linear/bf16-precision-bf16"]
    assert {"linear/bf16", "attention/gqa-int4"} <= {one.name for one in cases_for(PLAIN)}


def test_every_op_that_rounds_and_every_format_and_kv_dtype_is_tried_in_every_arithmetic() -> None:
    few = [one for one in all_cases() if one.name in IN_EVERY_ARITHMETIC]
    assert len(few) == len(IN_EVERY_ARITHMETIC)
    assert {op.kind for one in few for op in one.ops} >= {"linear", "head", "attention", "encoder_attention"}
    assert {one.format for one in few} == {*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS}
    assert {one.kv_dtype for one in few} == set(KV_DTYPES)


def test_a_case_that_tests_no_kv_dtype_uses_the_first_of_a_device_that_lacks_its_own() -> None:
    half = in_arithmetic(case("part/layers.1.mixer"), HALVES, Arithmetic("int8", "f32"))
    assert (half.name, half.kv_dtype) == ("part/layers.1.mixer-kv-f16", "f16")
    assert half.max_nmse == MAX_NMSE["f32"]["f16"].part
    without = in_arithmetic(case("linear/f32"), HALVES, Arithmetic("int8", "f32"))
    assert (without.name, without.kv_dtype, without.max_nmse) == ("linear/f32", "f16", 1e-9)
    assert in_arithmetic(case("attention/gqa-bf16"), HALVES, Arithmetic("f16", "f16")).kv_dtype == "bf16"


@pytest.mark.parametrize(
    ("name", "arithmetic", "expected"),
    [
        ("norm/rms", ("f16", "f16"), 1e-10),
        ("embed/q4", ("bf16", "bf16"), 1e-10),
        ("linear/f32", ("f16", "f16"), MAX_NMSE["f16"]["f32"].part),
        ("linear/q4", ("f32", "f32"), MAX_NMSE["f32"]["f32"].part),
        ("linear/q4", ("bf16", "bf16"), MAX_NMSE["bf16"]["f32"].part),
        ("program/q4", ("bf16", "bf16"), MAX_NMSE["bf16"]["f32"].program),
        ("program/q4", ("int8", "f16"), MAX_NMSE["f16"]["int8"].program),
        ("program/q4", ("int8", "f32"), 1e-4),
        ("attention/gqa-int4", ("f16", "f16"), MAX_NMSE["f16"]["int4"].part),
    ],
)
def test_the_bound_is_that_of_the_arithmetic_where_an_op_rounds(
    name: str, arithmetic: Any, expected: float
) -> None:
    assert in_arithmetic(case(name), CPU, Arithmetic(*arithmetic)).max_nmse == expected


@pytest.mark.parametrize(
    "name", ["linear/f32", "linear/q4", "attention/gqa-f32", "encoder_attention/4x12", "head/plain"]
)
def test_the_reference_rounds_in_every_op_that_multiplies_rows(name: str) -> None:
    outcomes = []
    for type_ in ("f32", "f16", "bf16"):
        outcome = reference_outcome(in_arithmetic(case(name), CPU, Arithmetic(type_, type_)))
        outcomes.append(np.array(list(outcome.rows.values())))
    exact, f16, bf16 = outcomes
    assert 0 < np.square(f16 - exact).sum() < np.square(bf16 - exact).sum() / 16


def test_programs_that_are_rounded_use_every_expert() -> None:
    exact, rounded = Arithmetic("int8", "f32"), Arithmetic("f16", "f16")

    def used(name: str, arithmetic: Arithmetic) -> set[int]:
        ops = in_arithmetic(case(name), CPU, arithmetic).ops
        return {op.top_k for op in ops if isinstance(op, Router | Experts)}

    assert (used("program/experts-f32", exact), used("program/experts-f32", rounded)) == ({2}, {9})
    assert used("experts/gated", rounded) == used("experts/gated", exact)
