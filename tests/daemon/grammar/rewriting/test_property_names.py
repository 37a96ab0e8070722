from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements


@pytest.mark.parametrize(
    "schema",
    [
        {"propertyNames": False},
        {"propertyNames": {"pattern": "^a"}},
        {"propertyNames": {"maxLength": 1}},
        {"propertyNames": {"enum": ["a", "b"]}},
        {"propertyNames": {"const": "a"}, "additionalProperties": {"type": "number"}},
        {"propertyNames": {"not": {"const": "a"}}},
        {"propertyNames": {"anyOf": [{"pattern": "^a"}, {"minLength": 3}]}},
        {"propertyNames": {"$ref": "#/$defs/x"}, "$defs": {"x": {"pattern": "b"}}},
        {"propertyNames": {"type": "number"}},
        {"propertyNames": {"pattern": "b"}, "properties": {"a": {}, "ab": {"type": "string"}}},
        {"propertyNames": {"maxLength": 1}, "patternProperties": {"^a": {"type": "number"}}, "minProperties": 1},
        {"propertyNames": {"maxLength": 1}, "unevaluatedProperties": {"type": "number"}},
        {"propertyNames": {"pattern": "^a"}, "required": ["a"]},
    ],
)  # fmt: skip
def test_allows_objects_with_such_names_alone(schema: dict[str, Any]) -> None:
    assert disagreements(schema) == []


@pytest.mark.parametrize(
    "patterns",
    [
        {"^a": {"type": "number"}, "b$": {"type": ["number", "string"]}},
        {"a": {"type": "number"}, "b": {"type": "string"}, "^.$": {"enum": [1, "a"]}},
        {"a": True, "": False},
        {"^a$": {}, "^b$": False},
    ],
)
def test_patterns_that_overlap_all_hold(patterns: dict[str, Any]) -> None:
    assert disagreements({"patternProperties": patterns}) == []
    assert disagreements({"patternProperties": patterns, "additionalProperties": False}) == []


def test_many_patterns_that_overlap_are_refused() -> None:
    patterns = {f"^.{{{number}}}a": True for number in range(7)}
    with pytest.raises(GrammarError, match="more than 6 patternProperties that overlap at #"):
        enforceable({"patternProperties": patterns})
