from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.closed_objects import close_objects
from llmd.grammar.json_schema import schema_grammar
from tests.daemon.grammar.conftest import Follow

BOOL = {"type": "boolean"}
CLOSED = {"additionalProperties": False}


def has(*names: str) -> dict[str, Any]:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": dict.fromkeys(names, BOOL)}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "object"}, id="no properties"),
        pytest.param({**has("a"), "additionalProperties": True}, id="open by itself"),
        pytest.param({**has("a"), "additionalProperties": BOOL}, id="others of a schema"),
        pytest.param({**has("a"), "unevaluatedProperties": True}, id="others by another keyword"),
        pytest.param(BOOL, id="no object"),
        pytest.param(True, id="boolean"),
    ],
)
def test_what_is_open_by_itself_stays_open(schema: Any) -> None:
    assert close_objects(schema) == schema


def test_objects_are_closed_wherever_they_stand() -> None:
    inner = has("b")
    schema = {
        **has(),
        "properties": {"a": inner, "many": {"items": inner}, "or": {"anyOf": [inner, {"type": "null"}]}},
        "$defs": {"d": inner},
    }
    shut = {**inner, **CLOSED}
    assert close_objects(schema) == {
        **schema,
        **CLOSED,
        "properties": {"a": shut, "many": {"items": shut}, "or": {"anyOf": [shut, {"type": "null"}]}},
        "$defs": {"d": shut},
    }


@pytest.mark.parametrize(
    "use",
    [
        {"$ref": "#/$defs/d", "description": "one"},
        {"allOf": [{"$ref": "#/$defs/d"}], "default": {}},
        {"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]},
    ],
    ids=str,
)
def test_a_definition_that_is_used_alone_is_closed(use: dict[str, Any]) -> None:
    schema = {**has(), "properties": {"a": use}, "$defs": {"d": has("b")}}
    assert close_objects(schema) == {**schema, **CLOSED, "$defs": {"d": {**has("b"), **CLOSED}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [has("a"), has("b")]},
        {"allOf": [{"$ref": "#/$defs/d"}, has("b")], "$defs": {"d": has("a")}},
        {**has("a"), "anyOf": [has("b"), has("c")]},
        {**has("a"), "$ref": "#/$defs/d", "$defs": {"d": {"allOf": [has("b")]}}},
        {"if": has("a"), "then": has("b"), "else": has("c")},
        {**has("a"), "dependentSchemas": {"a/~": has("b")}},
    ],
    ids=str,
)
def test_schemas_of_one_object_leave_each_other_their_properties(schema: dict[str, Any]) -> None:
    assert close_objects(schema) == schema


def test_a_definition_may_refer_to_itself() -> None:
    node = {**has("a"), "properties": {"next": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}
    assert close_objects(node) == node
    leaf = {**has("a"), "properties": {"next": {"$ref": "#"}}}
    assert close_objects(leaf) == {**leaf, **CLOSED}


def test_a_long_chain_of_references_is_followed() -> None:
    links = {f"{place}": {**has("a"), "$ref": f"#/$defs/{place + 1}"} for place in range(3000)}
    schema = {"$defs": {**links, "3000": has("b")}}
    assert close_objects(schema) == schema


@pytest.mark.parametrize("schema", [{"properties": {"a": 5}}, {"items": "x"}, 5])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(GrammarError):
        close_objects(schema)


def test_other_properties_can_be_written_only_where_a_schema_is_open(follow: Follow) -> None:
    schema = {**has("a"), "required": ["a"]}
    texts = [json.dumps({"a": True}), json.dumps({"a": True, "b": 1})]
    assert [follow(schema_grammar(schema), text) for text in texts] == [True, True]
    assert [follow(schema_grammar(close_objects(schema)), text) for text in texts] == [True, False]


def test_properties_from_several_schemas_can_all_be_written(follow: Follow) -> None:
    base = {**has("a"), "required": ["a"]}
    schema = {"allOf": [{"$ref": "#/$defs/base"}, {**has("b"), "required": ["b"]}], "$defs": {"base": base}}
    assert follow(schema_grammar(close_objects(schema)), json.dumps({"a": True, "b": False}))
