from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "null", "object"]},
        {"type": "number"},
        {"const": "a"},
        {"const": 1},
        {"const": None},
        {"const": True},
        {"const": ["a", 1]},
        {"const": {"a": 1, "b": 2}},
        {"enum": [1, 2, "a", "ab", [1], [1, 2], {"a": 1}, {"b": 1}]},
        {"minimum": 2},
        {"maximum": 2},
        {"exclusiveMinimum": 2, "exclusiveMaximum": 3},
        {"minLength": 2},
        {"maxLength": 1},
        {"pattern": "^a"},
        {"format": "date"},
        {"minItems": 2},
        {"maxItems": 1},
        {"items": {"type": "number"}},
        {"prefixItems": [{"const": 1}, {"const": 2}], "items": False},
        {"prefixItems": [{"const": "a"}], "items": {"type": "string"}},
        {"contains": {"const": 1}},
        {"contains": {"const": 1}, "minContains": 2},
        {"contains": {"const": 1}, "minContains": 0, "maxContains": 1},
        {"required": ["a", "b"]},
        {"properties": {"a": {"const": 1}, "b": {"type": "string"}}},
        {"properties": {"a": {}}, "additionalProperties": False},
        {"minProperties": 1},
        {"maxProperties": 0},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"unevaluatedProperties": False, "properties": {"a": {}}},
        {"allOf": [{"minimum": 1}, {"maximum": 2}]},
        {"anyOf": [{"type": "string"}, {"minimum": 2}]},
        {"oneOf": [{"minimum": 1}, {"maximum": 2}, {"type": "string"}]},
        {"not": {"type": "string"}},
        {"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "null"}},
        {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        {"type": "array", "minimum": 5},
    ],
    ids="-".join,
)
def test_allows_what_the_other_schema_does_not(schema: dict[str, Any]) -> None:
    assert disagreements({"not": schema}) == []
    assert disagreements({"items": {"not": schema}, "additionalProperties": {"not": {"not": schema}}}) == []


def test_references_are_negated_by_definitions_of_their_own() -> None:
    tree = {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}}, "required": ["a"]}
    assert disagreements({"not": {"$ref": "#/$defs/tree"}, "$defs": {"tree": tree}}) == []
    assert disagreements({"type": "object", "properties": {"a": {"not": {"$ref": "#"}}}}) == []


def test_types_beside_it_decide_what_matters() -> None:
    assert disagreements({"type": ["string", "integer"], "not": {"type": "integer"}}) == []
    assert disagreements({"type": "string", "not": {"multipleOf": 2, "maxLength": 1}}) == []


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"not": {"type": "integer"}}, "the type integer among numbers at #"),
        (
            {"properties": {"a/b": {"not": {"multipleOf": 2}}}},
            "needs the negation of multipleOf at #/properties/a~1b",
        ),
        ({"not": {"uniqueItems": True}}, "needs the negation of uniqueItems"),
        ({"not": {"patternProperties": {"a": False}}}, "needs the negation of patternProperties"),
        ({"not": {"propertyNames": {"pattern": "a"}}}, "needs the negation of propertyNames"),
        (
            {"not": {"additionalProperties": {"type": "string"}}},
            "needs the negation of additionalProperties with a schema",
        ),
        (
            {"not": {"properties": dict.fromkeys("abcde", True), "additionalProperties": False}},
            "needs the negation of additionalProperties with more than 4 properties",
        ),
        ({"not": {"format": "email"}}, "needs the negation of format email"),
        (
            {"items": {"not": {"$ref": "#/$defs/whole"}}, "$defs": {"whole": {"type": "integer"}}},
            "at #/items,",
        ),
    ],
)
def test_what_has_no_opposite_is_refused_with_its_path(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=named):
        enforceable(schema)
