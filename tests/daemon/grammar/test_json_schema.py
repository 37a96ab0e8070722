from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import closed, enforceable, first_path, schema_grammar
from tests.daemon.grammar.conftest import Follow


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"uniqueItems": True}, "uniqueItems at #"),
        ({"properties": {"a/b": {"items": {"not": {}}}}}, "not at #/properties/a~1b/items"),
        ({"anyOf": [{}, {"if": {}, "then": False}]}, "if at #/anyOf/1"),
        ({"contains": {"type": "string"}}, "contains at #"),
        ({"propertyNames": {"pattern": "a"}}, "propertyNames at #"),
        ({"dependentRequired": {"a": ["b"]}}, "dependentRequired at #"),
        ({"dependencies": {"a": ["b"]}}, "dependencies at #"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties at #"),
        ({"$dynamicRef": "#a"}, r"\$dynamicRef at #"),
        ({"format": "regex"}, "format regex at #"),
        ({"items": {"format": "json-pointer"}}, "format json-pointer at #/items"),
        ({"minProperties": 3, "required": ["a", "b"]}, "minProperties above 1"),
        ({"$defs": {"x": {"const": "\x01"}}}, r"control character in const at #/\$defs/x"),
        ({"properties": {"\x01": {}}}, "control character in properties at #"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_path(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(GrammarError, match=named):
        enforceable(schema)


@pytest.mark.parametrize(
    "neutral",
    [
        {"uniqueItems": False},
        {"not": False},
        {"if": {"type": "string"}},
        {"then": False},
        {"if": {"type": "string"}, "then": True, "else": {}},
        {"minContains": 2},
        {"contains": {}},
        {"propertyNames": True},
        {"propertyNames": {"type": "string"}},
        {"dependentRequired": {}},
        {"unevaluatedItems": True},
        {"format": "password"},
        {"minProperties": 1, "required": ["a"]},
        {"x-guidance": {"lenient": True}},
    ],
    ids=lambda neutral: next(iter(neutral)),
)
def test_what_binds_nothing_is_left_out(neutral: dict[str, Any]) -> None:
    expected = {"type": "object"} | {key: neutral[key] for key in neutral if key == "required"}
    assert enforceable({"type": "object"} | neutral) == expected


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
        ({"items": 5}, "at #/items what is no schema"),
        (5, "at # what is no schema"),
        (json.loads('{"items": ' * 70 + "{}" + "}" * 70), "nested more than 64"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        enforceable(schema)


def test_one_of_alternatives_that_exclude_each_other_is_any_of(follow: Follow) -> None:
    kinds = [
        {"properties": {"kind": {"const": kind}}, "required": ["kind"], "type": "object"}
        for kind in ("cat", "dog")
    ]
    grammar = schema_grammar(
        {"oneOf": [{"$ref": f"#/$defs/{n}"} for n in "ab"], "$defs": dict(zip("ab", kinds, strict=True))}
    )
    assert follow(grammar, '{"kind": "dog"}')
    assert not follow(grammar, '{"kind": "cow"}')
    both = {"oneOf": [{"const": 1}, {"const": 2}], "anyOf": [{"const": 2}, {"const": 3}]}
    assert follow(schema_grammar(both), "2")
    assert not follow(schema_grammar(both), "1")


def test_one_of_alternatives_that_may_overlap_is_refused_with_its_path(follow: Follow) -> None:
    schema = {"properties": {"x": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}}
    with pytest.raises(
        GrammarError, match="oneOf at #/properties/x, whose alternatives do not exclude each other"
    ):
        follow(schema_grammar(schema), "")


@pytest.mark.parametrize(
    ("bounds", "taken", "refused"),
    [
        ({"exclusiveMinimum": 0, "maximum": 0.5}, ["0.1", "0.5"], ["0", "0.0", "-0.1"]),
        ({"minimum": -0.5, "exclusiveMaximum": 0}, ["-0.1"], ["0", "-0", "0.1"]),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 0.25}, ["0.1", "0.24"], ["0", "0.25"]),
        ({"minimum": 0, "exclusiveMinimum": True, "maximum": 1}, ["0.5", "1"], ["0"]),
        ({"minimum": 0, "exclusiveMinimum": False, "maximum": 1}, ["0", "1"], ["-1"]),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 2}, ["1", "2"], ["0", "3"]),
    ],
)
def test_bounds_leave_zero_out_where_they_say_so(
    follow: Follow, bounds: dict[str, Any], taken: list[str], refused: list[str]
) -> None:
    grammar = schema_grammar({"type": "number"} | bounds)
    assert [text for text in taken if not follow(grammar, text)] == []
    assert [text for text in refused if follow(grammar, text)] == []


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


def test_first_path_is_that_of_a_keyword() -> None:
    assert first_path({"properties": {"oneOf": {"oneOf": []}}}, "oneOf") == "#/properties/oneOf"
    assert not first_path({"properties": {"oneOf": {}}}, "oneOf")
