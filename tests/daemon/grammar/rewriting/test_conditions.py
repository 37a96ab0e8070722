from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

STRING = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"if": STRING, "then": {"maxLength": 1}},
        {"if": STRING, "else": {"minimum": 2}},
        {"if": STRING, "then": {"maxLength": 1}, "else": {"type": "null"}},
        {"if": True, "then": STRING, "else": {"type": "null"}},
        {"if": False, "then": STRING, "else": {"type": "null"}},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": False},
        {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": STRING}}},
        {"if": {"if": STRING, "then": {"minLength": 1}}, "then": {"type": ["string", "number"]}},
        {"dependentRequired": {"a": ["b"]}},
        {"dependentRequired": {"a": ["b", "c"], "b": ["a"], "c": []}},
        {"dependentRequired": {"a": ["a"]}},
        {"dependentSchemas": {"a": {"required": ["b"]}, "b": True, "c": False}},
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "number"}}}}, "dependentRequired": {"a": ["b"]}},
        {"additionalProperties": {"dependentRequired": {"b": ["c"]}}},
    ],
)  # fmt: skip
def test_allows_what_follows_from_the_condition(schema: dict[str, Any]) -> None:
    assert disagreements(schema) == []


def test_too_many_properties_that_ask_for_others_are_refused() -> None:
    with pytest.raises(GrammarError, match="of more than 10 properties at #/items, which"):
        enforceable({"items": {"dependentRequired": {f"p{n}": ["q"] for n in range(11)}}})
