from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import closed, enforceable, schema_grammar
from tests.daemon.grammar.conftest import Follow


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"uniqueItems": True}, "uniqueItems at #"),
        (
            {"properties": {"a/b": {"items": {"not": {"multipleOf": 2}}}}},
            "multipleOf at #/properties/a~1b/items",
        ),
        ({"format": "regex"}, "format regex at #"),
        ({"items": {"format": "idn-hostname"}}, "format idn-hostname at #/items"),
        ({"minProperties": 4, "required": ["a", "b"]}, "minProperties above 1"),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"const": "\x01"}}},
            r"control character in const at #/\$defs/x",
        ),
        ({"properties": {"\x01": {}}}, "control character in properties at #"),
        ({"$ref": "http://example.org/x"}, "another document"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_path(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=named):
        enforceable(schema)


def test_patterns_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(GrammarError, match="nested too deeply"):
        enforceable({"propertyNames": {"pattern": "(" * 2000 + ")" * 2000}})


def test_names_of_properties_and_data_are_no_keywords() -> None:
    schema = {
        "properties": {"not": {"type": "string"}, "uniqueItems": True},
        "const": {"if": 1, "then": 2},
        "examples": [{"format": "regex"}],
    }
    assert enforceable(schema) == schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"items": 5}, "at #/items that is not a schema"),
        (5, "at # that is not a schema"),
        (json.loads('{"items": ' * 70 + "{}" + "}" * 70), "nested more than 64"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        enforceable(schema)


def test_strict_objects_have_all_their_properties_in_order_and_no_others(follow: Follow) -> None:
    inner = {"type": "object", "properties": {"c": {"type": "null"}}}
    schema = {"type": "object", "properties": {"b": {"type": "integer"}, "a": inner}}
    strict, loose = schema_grammar(schema, strict=True), schema_grammar(schema)
    assert follow(strict, '{"b": 1, "a": {"c": null}}')
    for text in (
        '{"b": 1}',
        '{"a": {"c": null}, "b": 1}',
        '{"b": 1, "a": {}}',
        '{"b": 1, "a": {"c": null}, "d": 1}',
    ):
        assert not follow(strict, text)
    assert follow(loose, '{"b": 1, "d": 1}')


def test_strictness_leaves_what_the_schema_says_itself() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    assert closed(schema) == schema
    parts: dict[str, Any] = {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    assert closed(parts) == {"allOf": [{"properties": {n: {}}, "required": [n]} for n in "ab"]}
    assert closed({"type": "object"}) == {"type": "object", "additionalProperties": False}
