from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

A: dict[str, Any] = {"properties": {"a": {"type": "number"}}}
NEEDS_B: dict[str, Any] = {"properties": {"b": {}}, "required": ["b"]}


@pytest.mark.parametrize("rest", [False, {"type": "string"}])
@pytest.mark.parametrize(
    "schema",
    [
        A,
        {"patternProperties": {"^a": {}}},
        {"additionalProperties": {"type": "number"}},
        {"allOf": [A, {"patternProperties": {"b$": {}}}]},
        {"anyOf": [A, NEEDS_B, {"properties": {"c": {}}}]},
        {"oneOf": [{**A, "required": ["a"]}, NEEDS_B]},
        {"if": {**A, "required": ["a"]}, "then": NEEDS_B, "else": {"properties": {"c": {}}}},
        {"if": NEEDS_B, "else": {"properties": {"c": {}}}},
        {"if": True, "then": A, "else": NEEDS_B},
        {"dependentSchemas": {"a": {"properties": {"a": {}, "b": {}}}}},
        {"$ref": "#/$defs/a", "properties": {"b": {}}, "$defs": {"a": A}},
        {"not": {"not": NEEDS_B}, **A},
        {"allOf": [{**A, "unevaluatedProperties": {"type": "number"}}]},
        {"allOf": [{**A, "unevaluatedProperties": True}]},
        {"properties": {"a": {**A, "unevaluatedProperties": False}}, "anyOf": [{"properties": {"a": NEEDS_B}}, True]},
        {"propertyNames": {"maxLength": 1}},
        {"required": ["ab"]},
    ],
)  # fmt: skip
def test_properties_that_no_part_evaluates_are_bound(schema: dict[str, Any], rest: Any) -> None:
    assert disagreements({"unevaluatedProperties": rest, **schema}) == []


@pytest.mark.parametrize("rest", [False, {"type": "string"}])
@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [{"type": "number"}]},
        {"items": {"type": "number"}},
        {"allOf": [{"prefixItems": [True, {"const": 1}]}], "prefixItems": [True]},
        {"anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [True, {"const": "b"}]}]},
        {"contains": {"const": 1}},
        {"contains": {"const": 1}, "minContains": 0},
        {"allOf": [{"contains": {"const": 1}}, {"contains": {"type": "boolean"}}]},
        {"if": {"prefixItems": [{"const": 1}]}, "then": {"items": True}},
        {"allOf": [{"unevaluatedItems": {"type": "number"}}]},
    ],
)
def test_items_that_no_part_evaluates_are_bound(schema: dict[str, Any], rest: Any) -> None:
    assert disagreements({"unevaluatedItems": rest, **schema}) == []


def test_a_tree_may_be_closed_at_every_level() -> None:
    tree = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/closed"}},
    }
    closed = {"$ref": "#/$defs/tree", "unevaluatedProperties": False}
    schema = {"$ref": "#/$defs/closed", "$defs": {"tree": tree, "closed": closed}}
    values = [{}, {"a": {}}, {"a": {"a": {}}}, {"a": {"b": 1}}, {"b": 1}, {"a": {"a": {"b": 1}}}]
    assert disagreements(schema, values) == []


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"anyOf": [{"properties": {f"p{n}": {}}} for n in range(8)]}, "with too many alternatives"),
        ({"allOf": [{"anyOf": [A, NEEDS_B]}] * 5}, "with too many alternatives"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}, "that refers to itself"),
    ],
)
def test_too_many_alternatives_are_refused(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=f"unevaluatedProperties or unevaluatedItems {named} at #"):
        enforceable({"unevaluatedProperties": False, **schema})
