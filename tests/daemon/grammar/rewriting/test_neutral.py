from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.json_schema import enforceable
from llmd.grammar.rewriting.neutral import required_names, without_neutral


@pytest.mark.parametrize(
    "neutral",
    [
        {"uniqueItems": False},
        {"not": False},
        {"if": {"type": "string"}},
        {"if": False, "else": True},
        {"then": False},
        {"if": {"type": "string"}, "then": True, "else": {}},
        {"minContains": 2},
        {"contains": {"const": 1}, "minContains": 0},
        {"propertyNames": True},
        {"propertyNames": {"type": "string"}},
        {"dependentRequired": {}},
        {"unevaluatedItems": True},
        {"unevaluatedProperties": {}},
        {"format": "password"},
        {"minProperties": 1, "required": ["a"]},
        {"x-guidance": {"lenient": True}},
    ],
    ids="-".join,
)
def test_what_binds_nothing_is_left_out(neutral: dict[str, Any]) -> None:
    expected = {"type": "object"} | {key: neutral[key] for key in neutral if key == "required"}
    assert without_neutral({"type": "object"} | neutral) == expected
    assert enforceable({"type": "object"} | neutral) == expected


@pytest.mark.parametrize(
    "binding",
    [
        {"contains": True},
        {"contains": {}},
        {"contains": {}, "maxContains": 1},
        {"contains": {"const": 1}, "minContains": 0, "maxContains": 2},
        {"not": True},
        {"not": {}},
        {"uniqueItems": True},
        {"if": True, "then": False},
        {"minProperties": 2, "required": ["a", "a"]},
        {"format": "date"},
    ],
    ids="-".join,
)
def test_what_binds_stays(binding: dict[str, Any]) -> None:
    assert without_neutral(binding) == binding


def test_required_names_are_each_there_once() -> None:
    assert required_names({"required": ["b", "a", "b"]}) == ["b", "a"]
    assert required_names({}) == []
