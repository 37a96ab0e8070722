from __future__ import annotations

from llmd.api import Attention, HeadLinear, Join
from llmd.testing.latent_cases import integer_case, latent_cases

CASES = {case.name: case for case in latent_cases()}


def test_matrices_of_heads_are_whole_tensors_or_parts_of_one() -> None:
    weights = [op.weight for case in CASES.values() for op in case.ops if isinstance(op, HeadLinear)]
    assert any(weight.rows is not None for weight in weights)
    assert any(weight.columns is not None and weight.is_transposed for weight in weights)
    assert any(weight.rows is None and not weight.is_transposed for weight in weights)


def test_values_of_one_head_and_of_several_are_joined() -> None:
    joins = [op for case in CASES.values() for op in case.ops if isinstance(op, Join)]
    assert {op.heads == 1 for op in joins} == {True, False}


def test_a_latent_value_is_a_part_of_its_key() -> None:
    attentions = [op for case in CASES.values() for op in case.ops if isinstance(op, Attention)]
    assert all(op.k == op.v and op.value_dim < op.head_dim for op in attentions)


def test_an_integer_case_has_matrices_of_heads_in_its_format() -> None:
    case = integer_case("q4_g32", 100)
    (op,) = (op for op in case.ops if isinstance(op, HeadLinear))
    assert case.format_of(op.kind, op.weight) == "q4_g32"
