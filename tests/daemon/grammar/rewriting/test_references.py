from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from llmd.grammar.rewriting.references import with_local_references
from tests.structured.conformity import disagreements

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
STRING: dict[str, Any] = {"type": "string"}
TREE: dict[str, Any] = {
    "$id": "tree",
    "$dynamicAnchor": "node",
    "properties": {"b": {"$dynamicRef": "#node"}},
}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}, "maxProperties": 1},
        {"$ref": "#/$defs/x", "$defs": {"x": STRING}},
        {"$ref": "#/definitions/a~1b%25c", "definitions": {"a/b%c": STRING}},
        {"$ref": "#/properties/a", "properties": {"a": {"type": ["string", "object"]}}},
        {"items": {"$ref": "#name"}, "$defs": {"x": {"$anchor": "name", **STRING}}},
        {"items": {"$ref": "other"}, "$defs": {"x": {"$id": "other", "anyOf": [STRING, {"$ref": "#/$defs/y"}], "$defs": {"y": {"const": 1}}}}},
        {"$id": "http://example.org/a/b", "items": {"$ref": "/c#/$defs/y"}, "$defs": {"x": {"$id": "../c", "$defs": {"y": STRING}}}},
        {"$id": "urn:example:x", "items": {"$ref": "urn:example:x#/$defs/y"}, "$defs": {"y": STRING}},
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"$ref": "#/$defs/y"}, "y": STRING}},
        {"items": {"$ref": "#/$defs/x", "maxLength": 1}, "$defs": {"x": STRING}},
        {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": False}},
        {"items": {"$ref": "#/note"}, "note": STRING},
        {"items": {"$dynamicRef": "#/$defs/x"}, "$defs": {"x": STRING}},
        {"$ref": "tree", "$defs": {"tree": TREE}},
        {"$id": "root", "$dynamicAnchor": "node", "$ref": "tree", "properties": {"a": STRING}, "$defs": {"tree": TREE}},
        {"items": {"$ref": "list"}, "$defs": {"l": {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"d": {"$dynamicAnchor": "item"}}}, "i": {"$dynamicAnchor": "item", "const": 1}}},
        {"$schema": DRAFT_7, "items": {"$ref": "#/definitions/x", "maxLength": 1}, "definitions": {"x": STRING}},
        {"$schema": DRAFT_7, "items": {"$ref": "#x"}, "definitions": {"y": {"$id": "#x", **STRING}}},
    ],
)  # fmt: skip
def test_each_kind_of_reference_leads_where_it_should(schema: dict[str, Any]) -> None:
    assert disagreements(schema) == []


def test_an_identifier_beside_a_reference_is_its_base_from_draft_2019_on() -> None:
    schema = {
        "$id": "http://example.org/",
        "items": {"$id": "inner/", "$ref": "x"},
        "$defs": {"outer": {"$id": "x", "type": "string"}, "inner": {"$id": "inner/x", "type": "number"}},
    }
    older = {"definitions": schema["$defs"], **{key: schema[key] for key in ("$id", "items")}}
    assert disagreements({"$schema": DRAFT_7, **older}) == []
    assert disagreements({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}) == []
    with pytest.raises(GrammarError, match=r"\$id next to \$ref at #/items, which drafts read differently"):
        enforceable(schema)


def test_definitions_keep_their_names_and_unused_ones_are_left_out() -> None:
    unused = {"not": {"uniqueItems": True}}
    schema = {"$ref": "#/$defs/x", "$defs": {"x": STRING, "y": unused}}
    document = {"items": {"$ref": "#/$defs/x"}, "$defs": schema["$defs"]}
    assert with_local_references(document) == {"items": {"$ref": "#/$defs/x"}, "$defs": {"x": STRING}}
    assert disagreements(schema) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"items": {"$ref": "#/$defs/x"}}, "refers at #/items to #/$defs/x, which does not exist in it"),
        ({"$ref": "#name"}, "refers at # to #name, which does not exist in it"),
        ({"$ref": "http://example.org/x#/y"}, "which is in another document and is not fetched"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "which is in another document"),
        ({"$ref": "#/$defs/x/enum", "$defs": {"x": {"enum": [1]}}}, "that is not a schema"),
    ],
)
def test_references_that_lead_nowhere_are_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(GrammarError) as caught:
        enforceable(schema)
    assert reason in caught.value.message
