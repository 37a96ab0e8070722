from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.json_schema import schema_grammar
from llmd.grammar.rewriting.values import other_values, spelled, type_of
from tests.structured.conformity import VALUES, allows, compiler


@pytest.mark.parametrize(
    "values",
    [
        [None],
        [True, False],
        [1],
        [1, 2.5, -1],
        ["", "a", "abc"],
        [[], [1], [1, 2]],
        [{}, {"a": 1}, {"a": 1, "b": 2}],
        ["a", 1, None, [1, 1], {"b": [1, "a"]}],
    ],
)
def test_all_but_some_values_are_allowed(values: list[Any]) -> None:
    matcher = compiler().compile(schema_grammar(other_values(values)))
    known = {spelled(value) for value in values}
    assert [value for value in VALUES if allows(matcher, value) != (spelled(value) not in known)] == []


def test_equal_values_are_spelled_alike() -> None:
    assert spelled({"a": [1.0], "b": 2}) == spelled({"b": 2.0, "a": [1]})
    assert spelled(True) != spelled(1)
    assert spelled(1.5) != spelled(1)


def test_types_are_named_as_schemas_do() -> None:
    values: list[Any] = [None, True, 1, 1.5, "", [], {}]
    assert [type_of(value) for value in values] == [
        "null", "boolean", "number", "number", "string", "array", "object",
    ]  # fmt: skip
