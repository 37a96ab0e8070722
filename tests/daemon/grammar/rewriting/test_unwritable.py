from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.unwritable import check_characters, without_whole_bounds
from tests.structured.conformity import disagreements


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"const": "\x01"}, "const"),
        ({"enum": [1, ["\x1f"]]}, "enum"),
        ({"const": {"\x00": 1}}, "const"),
        ({"properties": {"\x01": {}}}, "properties"),
        ({"required": ["\x7f"]}, "required"),
    ],
)
def test_control_characters_that_have_no_escape_are_refused(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=f"a control character in {named} at #/items"):
        check_characters(schema, "#/items")


def test_other_characters_are_taken() -> None:
    text = "\b\f\n\r\t é\u2028\x80"
    check_characters({"const": text, "properties": {text: {}}, "description": "\x01"}, "#")
    assert disagreements({"const": text}, [text, "\b\f\n\r\t é\u2028"]) == []


@pytest.mark.parametrize(
    "between", [{"anyOf": [{"required": ["a"]}]}, {"allOf": [True]}, {"const": {"a": 1}}]
)
def test_patterns_are_known_to_additional_properties_wherever_they_stand(between: dict[str, Any]) -> None:
    patterns: dict[str, Any] = {"patternProperties": {"^a": {}}}
    others: dict[str, Any] = {"additionalProperties": False}
    assert disagreements({**patterns, **between, **others}) == []
    assert disagreements({**others, **between, **patterns, "properties": {"b": {}}}) == []


NUMBERS = (
    -3,
    -2.5,
    -2,
    -1.5,
    -1,
    -0.5,
    -0.25,
    0,
    0.25,
    0.5,
    1,
    1.25,
    1.5,
    2,
    2.25,
    2.5,
    3,
    4,
    2**31,
    2**31 + 1,
)


@pytest.mark.parametrize(
    "schema",
    [
        {"exclusiveMinimum": 0, "maximum": 0.5},
        {"exclusiveMinimum": 2, "maximum": 2.5},
        {"exclusiveMinimum": 1, "exclusiveMaximum": 1.5},
        {"minimum": -2.5, "exclusiveMaximum": -2},
        {"exclusiveMinimum": -1, "exclusiveMaximum": 0},
        {"minimum": 3, "exclusiveMinimum": 1},
        {"allOf": [{"exclusiveMinimum": 2}, {"maximum": 2.5}]},
        {"allOf": [{"exclusiveMinimum": 2}, {"type": "integer", "maximum": 3}]},
        {"type": "integer", "exclusiveMinimum": 0, "maximum": 2},
        {"exclusiveMinimum": 2**31},
        {"exclusiveMinimum": 1.25, "exclusiveMaximum": 2.25},
    ],
)
def test_bounds_leave_out_the_number_that_they_exclude(schema: dict[str, Any]) -> None:
    assert disagreements(schema, NUMBERS) == []


def test_the_integers_of_a_bound_need_no_margin() -> None:
    assert without_whole_bounds({"type": "integer", "exclusiveMinimum": 2}) == {
        "type": "integer",
        "exclusiveMinimum": 2,
    }
    assert without_whole_bounds({"exclusiveMinimum": 2, "minimum": 1}) == {"minimum": 2.000001}
