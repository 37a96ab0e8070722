from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.rewriting.unsatisfiable import with_definitions, without_false
from tests.structured.conformity import disagreements


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"allOf": [{"minimum": 1}, False]}, False),
        ({"anyOf": [False, False]}, False),
        ({"anyOf": [False, {"minimum": 1}], "title": "x"}, {"anyOf": [{"minimum": 1}], "title": "x"}),
        ({"anyOf": [{"minimum": 1}], "allOf": [True]}, {"anyOf": [{"minimum": 1}], "allOf": [True]}),
    ],
)
def test_alternatives_that_no_value_fits_are_left_out(schema: dict[str, Any], left: Any) -> None:
    assert without_false(schema) == left


def test_definitions_that_are_booleans_are_put_where_they_are_referred_to() -> None:
    definitions: dict[str, Any] = {
        "never": False,
        "either": {"anyOf": [{"$ref": "#/$defs/never"}]},
        "always": True,
    }
    schema = {"properties": {"a": {"$ref": "#/$defs/either"}, "b": {"$ref": "#/$defs/always"}}}
    assert with_definitions(schema, definitions) == {"properties": {"a": False, "b": {}}}
    assert with_definitions({"$ref": "#/$defs/never"}, definitions) is False


def test_a_definition_that_no_value_fits_leaves_other_alternatives() -> None:
    schema = {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "string"}], "$defs": {"x": {"not": {}}}}
    assert disagreements(schema) == []
