from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

CLOSED: dict[str, Any] = {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        {"maxProperties": 1},
        {"minProperties": 1},
        {"minProperties": 3, "required": ["a", "b"]},
        {"properties": {"a": {}}, "maxProperties": 2},
        {"properties": {"a": {}, "b": {}}, "maxProperties": 1},
        {"properties": {"a": {}, "b": {}}, "minProperties": 1},
        {"properties": {"a": False, "b": {}}, "required": ["b"], "maxProperties": 2},
        {**CLOSED, "minProperties": 2},
        {**CLOSED, "minProperties": 2, "maxProperties": 2},
        {**CLOSED, "required": ["b"], "minProperties": 2},
        {**CLOSED, "minProperties": 4},
        {**CLOSED, "maxProperties": 0},
        {**CLOSED, "type": ["object", "null"], "maxProperties": 1},
    ],
)
def test_allows_objects_of_as_many_properties(schema: dict[str, Any]) -> None:
    assert disagreements(schema, [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, {"x": 1}, {"b": 1, "x": 1}, {"a": 1, "b": 1, "x": 1}, None, 1]) == []  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"minProperties": 2}, "minProperties above 1"),
        ({"minProperties": 4, "required": ["a", "b"]}, "minProperties above 1"),
        ({"properties": {"a": {}}, "minProperties": 2}, "minProperties above 1"),
        ({"properties": dict.fromkeys("abcdefgh", True), "maxProperties": 2}, "with 8 optional properties"),
    ],
)
def test_what_cannot_be_counted_is_refused(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=f"{named}.* at #/items"):
        enforceable({"items": schema})
