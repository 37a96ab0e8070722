from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

THEN = {"required": ["b"]}
ELSE = {"required": ["c"]}


def case(value: Any, condition: dict[str, Any], **branches: Any) -> dict[str, Any]:
    return {"if": {"properties": {"a": value}, **condition}, **branches}


@pytest.mark.parametrize(
    "condition",
    [{}, {"required": ["a"]}, {"type": "object"}, {"type": "object", "required": ["a"], "title": "x"}],
)
@pytest.mark.parametrize("around", [{}, {"required": ["a"]}, {"type": "object"}])
def test_each_value_of_a_property_has_its_own_consequence(
    condition: dict[str, Any], around: dict[str, Any]
) -> None:
    cases = [
        case({"const": 1}, condition, then=THEN),
        case({"enum": [1, "a"]}, condition, then={"maxProperties": 2}, **{"else": ELSE}),
        case({"const": 3}, condition, **{"else": {"not": {"required": ["ab"]}}}),
        {"minProperties": 1},
    ]
    assert disagreements({"allOf": cases, **around}) == []


def test_other_conditions_stay_as_they_are() -> None:
    conditions = [
        {"if": {"required": ["a"]}, "then": THEN},
        {"if": {"properties": {"a": {"minimum": 2}}}, "then": THEN},
        {"if": {"properties": {"a": {"const": 1}, "b": {"const": 1}}}, "then": ELSE},
        {"if": {"properties": {"a": {"const": 1}}, "type": "array"}, "then": ELSE},
        {"if": {"properties": {"a": {"const": 1}}}, "then": ELSE, "type": "object"},
    ]
    assert disagreements({"allOf": conditions}) == []


def test_many_cases_grow_with_their_number_and_do_not_multiply() -> None:
    kinds = [f"kind {number}" for number in range(40)]
    cases = [case({"const": kind}, {}, then={"required": [f"of {kind}"]}) for kind in kinds]
    schema = {"type": "object", "properties": {"a": {"enum": kinds}}, "required": ["a"], "allOf": cases}
    assert len(enforceable(schema)["anyOf"]) == len(kinds) + 1  # type: ignore[index]
    values = [{"a": kinds[3], "of kind 3": 1}, {"a": kinds[3], "of kind 4": 1}, {"a": "other"}]
    assert disagreements(schema, values) == []
