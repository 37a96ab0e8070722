from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements


def tagged(value: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"const": value}}, "required": ["a"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [tagged("a"), tagged("b")]},
        {"oneOf": [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 1}]},
        {"oneOf": [{"minimum": 1}, {"maximum": 2}, {"type": "string"}]},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": [True, {"type": "string"}]},
        {"oneOf": [{}, False]},
        {"oneOf": [{"type": "string"}, False]},
        {"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "b$"}]},
        {"type": "integer", "oneOf": [{"type": "integer"}, {"minimum": 2}]},
        {"oneOf": [{"$ref": "#/$defs/x"}, {"minItems": 1}], "$defs": {"x": {"maxItems": 1}}},
        {"oneOf": [{"const": 1}, {"const": 2}], "anyOf": [{"const": 2}, {"const": 3}]},
        {"oneOf": [{"oneOf": [{"minimum": 1}, {"maximum": 2}]}, {"type": "string"}, {"const": 1}]},
    ],
)
def test_allows_what_fits_one_alternative_alone(schema: dict[str, Any]) -> None:
    assert disagreements(schema) == []


def test_alternatives_that_exclude_each_other_are_any_of_in_the_same_place() -> None:
    schema = {"oneOf": [{"type": "string"}, {"type": "null"}], "title": "x"}
    found = enforceable(schema)
    assert isinstance(found, dict)
    assert list(found.items()) == [("anyOf", schema["oneOf"]), ("title", "x")]


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ([{"type": "integer"}, {"type": "number"}], ": .* the type integer among numbers"),
        ([{"minimum": number} for number in range(9)], ""),
    ],
)
def test_alternatives_that_may_overlap_are_refused_with_their_path(choices: list[Any], reason: str) -> None:
    with pytest.raises(
        GrammarError, match=f"oneOf at #/properties/x, whose alternatives do not exclude each other{reason}"
    ):
        enforceable({"properties": {"x": {"oneOf": choices}}})
