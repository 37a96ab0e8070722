from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.rewriting.combining import all_of, any_of, for_type, types_of, with_schema, without


@pytest.mark.parametrize(
    ("schemas", "together", "either"),
    [
        ([], True, False),
        ([True, {}], True, True),
        ([{"minimum": 1}], {"minimum": 1}, {"minimum": 1}),
        ([{"minimum": 1}, True], {"minimum": 1}, True),
        ([{"minimum": 1}, False], False, {"minimum": 1}),
        (
            [{"minimum": 1}, {"maximum": 2}],
            {"allOf": [{"minimum": 1}, {"maximum": 2}]},
            {"anyOf": [{"minimum": 1}, {"maximum": 2}]},
        ),
    ],
)
def test_booleans_are_taken_out_of_what_they_decide(schemas: list[Any], together: Any, either: Any) -> None:
    assert all_of(schemas) == together
    assert any_of(schemas) == either


def test_a_schema_gets_another_one_without_losing_its_own() -> None:
    choice = {"anyOf": [{"minimum": 1}, {"maximum": 2}]}
    assert with_schema({"type": "number"}, choice) == {"type": "number", **choice}
    assert with_schema(choice, choice) == {**choice, "allOf": [choice]}
    assert with_schema({"allOf": [{}]}, False) == {"allOf": [{}, False]}
    assert with_schema(choice, True) is choice
    assert without({"type": "number", "minimum": 1}, "minimum", "maximum") == {"type": "number"}


def test_options_for_a_type_leave_the_others_free() -> None:
    options = [{"minItems": 1}]
    assert for_type("array", {"type": "array"}, options) == {"type": "array", "minItems": 1}
    assert for_type("array", {"type": "string"}, options) == {"type": ["string"]}
    assert for_type("array", {"type": ["array", "null"]}, options) == {
        "anyOf": [{"type": "array", "minItems": 1}, {"type": ["null"]}]
    }
    assert "array" not in for_type("array", {}, [])["type"]  # type: ignore[index]
    assert types_of({"type": "integer"}) == ["integer"]
    assert len(types_of({})) == 6
