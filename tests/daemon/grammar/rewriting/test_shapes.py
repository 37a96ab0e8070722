from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from llmd.grammar.rewriting.shapes import checked


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"minLength": -1}, "minLength at #/items with the value -1, which is not a non-negative integer"),
        ({"maxItems": 1.5}, "maxItems at #/items with the value 1.5, which is not a non-negative integer"),
        ({"minimum": True}, "minimum at #/items with the value True, which is not a number"),
        ({"pattern": 5}, "which is not a string"),
        ({"uniqueItems": 1}, "which is not a boolean"),
        ({"required": ["a", 1]}, "which is not a list of names"),
        ({"type": None}, "which is not the name of a type, or a list of them"),
        ({"enum": "ab"}, "which is not a list"),
        ({"anyOf": {"x": {}}}, "which is not a list"),
        ({"properties": ["a"]}, "which is not an object"),
        ({"dependentRequired": {"a": "b"}}, "which is not an object of lists of names"),
        ({"enum": "x" * 100}, r"the value 'x{56}\.\.\., which"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_with_their_path(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        enforceable({"items": schema})


def test_values_of_the_right_kind_stay() -> None:
    schema = {"minLength": 0, "maximum": 1.5, "required": [], "type": ["null"], "uniqueItems": False}
    assert checked(schema, "#") is schema
