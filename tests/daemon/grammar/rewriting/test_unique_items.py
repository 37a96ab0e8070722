from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

LISTS: tuple[Any, ...] = ([], [1], ["a"], [1, 1], [1, 2], [2, 1], [2, 1, 2], [1, 2, 3], [True], [True, False], [True, 1], [None, None], "a", {"a": 1})  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"enum": [1, 2, 3]}},
        {"items": {"enum": [1, 1.0, 2]}},
        {"items": {"type": "boolean"}},
        {"items": {"type": ["boolean", "null"]}, "minItems": 1},
        {"items": {"const": 1}},
        {"items": {"enum": [1, 2, 3, 4, 5, 6, 7]}, "maxItems": 2},
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"enum": [1, "a"], "type": "integer"}}},
        {"prefixItems": [{"type": "boolean"}, {"type": "boolean"}], "items": False},
        {"items": False},
        {"maxItems": 1},
        {"items": {"enum": [1, 2]}, "minItems": 3},
        {"type": "string"},
        {"items": {"enum": [1, 2, 3]}, "contains": {"const": 2}},
    ],
)
def test_allows_lists_without_an_item_twice(schema: dict[str, Any]) -> None:
    assert disagreements({"uniqueItems": True, **schema}, LISTS) == []


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({}, "uniqueItems at #"),
        ({"items": {"type": "string"}}, "uniqueItems at #"),
        ({"items": {"enum": [1, 2], "minimum": 2}}, "uniqueItems at #"),
        ({"items": {"enum": [1, 2, 3, 4, 5, 6]}}, "uniqueItems with more than 400 different lists at #"),
    ],
)
def test_lists_that_are_too_many_are_refused(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=named):
        enforceable({"uniqueItems": True, **schema})
