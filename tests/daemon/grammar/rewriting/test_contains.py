from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from llmd.grammar.rewriting.contains import MAX_PLACES
from tests.structured.conformity import disagreements

LISTS: tuple[Any, ...] = (
    [],
    [1],
    [2],
    [1, 1],
    [2, 1],
    [2, 2, 1],
    [1, 2, 1],
    ["a", 1, 1, 2, 1],
    [[1], {"a": 1}],
    "a",
    {"a": 1},
)


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": True},
        {"contains": {}},
        {"contains": False},
        {"contains": {"const": 1}},
        {"contains": {"const": 1}, "minContains": 2},
        {"contains": {"const": 1}, "maxContains": 1},
        {"contains": {"const": 1}, "minContains": 0, "maxContains": 1},
        {"contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        {"contains": {"const": 1}, "minContains": 3, "maxContains": 1},
        {"contains": {}, "maxContains": 2},
        {"contains": {"const": 1}, "minContains": 0},
        {"contains": {"type": ["number", "null"], "minimum": 1, "maximum": 1, "title": "long enough for a definition"}, "maxContains": 1},
        {"contains": {"const": 1}, "items": {"type": "integer"}, "minItems": 2},
        {"contains": {"const": 1}, "prefixItems": [{"const": 2}]},
        {"contains": {"contains": {"const": 1}}},
    ],
)  # fmt: skip
def test_allows_the_lists_that_have_as_many_items_as_asked_for(schema: dict[str, Any]) -> None:
    assert disagreements(schema, LISTS) == []


def test_an_item_that_matches_is_among_the_first_few() -> None:
    schema = {"contains": {"const": 1}}
    assert disagreements(schema, [[0] * (MAX_PLACES - 1) + [1, 0]]) == []
    assert disagreements(schema, [[0] * MAX_PLACES + [1]]) != []


def test_more_ways_than_can_be_written_are_refused() -> None:
    with pytest.raises(GrammarError, match="minContains 1 and maxContains 40, which needs more than 24"):
        enforceable({"contains": {"const": 1}, "maxContains": 40})
