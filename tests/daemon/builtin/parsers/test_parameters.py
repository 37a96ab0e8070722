from __future__ import annotations

from typing import Any

import pytest

from llmd.api.parsing import ChoiceTerm, Tool
from llmd.builtin.parsers.parameters import (
    definition_of,
    joined,
    pattern_of,
    required_of,
    schemas_of,
    value_of,
)

A, B, C = ("a",), ("b",), ("c",)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("7", {"type": "string"}, '"7"'),
        ('say "x"', {"type": "string"}, '"say \\"x\\""'),
        ("7", {"type": "integer"}, "7"),
        (" [1, 2] ", {"type": "array"}, "[1, 2]"),
        ("True", {"type": "boolean"}, "true"),
        ("None", {}, "null"),
        ("NaN", {"type": "number"}, '"NaN"'),
        ("seven", {"type": ["integer", "string"]}, '"seven"'),
        ("[" * 100_000, {}, '"' + "[" * 100_000 + '"'),
    ],
)
def test_plain_text_becomes_the_value_that_it_means(text: str, schema: dict[str, Any], value: str) -> None:
    assert value_of(text, schema) == value


def test_definitions_go_with_each_parameter() -> None:
    definitions = {"P": {"type": "integer"}}
    tool = Tool("f", {"properties": {"p": {"$ref": "#/$defs/P"}, "q": True}, "$defs": definitions})
    assert schemas_of(tool) == {"p": {"$ref": "#/$defs/P", "$defs": definitions}}
    assert schemas_of(Tool("f", {"properties": None})) == {}


def test_definitions_are_found_by_reference() -> None:
    root = {"$defs": {"a/b": {"type": "integer"}}, "definitions": {"c": {"items": {"type": "string"}}}}
    assert definition_of("#/$defs/a~1b", root) == {"type": "integer"}
    assert definition_of("#/definitions/c/items", root) == {"type": "string"}
    assert definition_of("#/$defs/other", root) == definition_of("other.json", root) == {}
    assert definition_of("#/$defs/a~1b/type/x", root) == {}


def test_patterns_bind_where_they_are_of_the_whole_text() -> None:
    patterns = ["^a|b$", "a", "^a", 3]
    assert [pattern_of({"pattern": one}) for one in patterns] == ["(?:a|b)", None, None, None]
    assert pattern_of({}) is None


def test_required_names_are_those_that_the_schema_lists() -> None:
    assert required_of({"required": ["a", 7]}) == {"a"}
    assert required_of({"required": True}) == required_of({}) == frozenset()


def test_needed_members_are_there_and_others_may_be() -> None:
    assert joined([(True, A), (False, B)], ",") == ("a", ChoiceTerm(((",", "b"), ())))
    assert joined([(True, A), (True, B)], ",") == ("a", ",", "b")
    assert joined([(False, A), (False, B)], "") == (ChoiceTerm((A, ())), ChoiceTerm((B, ())))
    assert joined([], ",") == ()


def test_separator_stands_between_members_alone_whichever_is_first() -> None:
    (choice,) = joined([(False, A), (True, B)], ",")
    assert choice == ChoiceTerm((("a", ",", "b"), ("b",)))
    (choice,) = joined([(False, A), (False, B)], ",")
    assert choice == ChoiceTerm((("a", ChoiceTerm(((",", "b"), ()))), (ChoiceTerm((B, ())),)))
