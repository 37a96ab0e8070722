from __future__ import annotations

from typing import Any

from llmd.grammar.subschemas import mapped, resolved

SCHEMA: dict[str, Any] = {
    "properties": {"a~/b": {"items": [{}, True]}, "items": {"type": "string"}},
    "additionalProperties": {"anyOf": [{"const": {"items": {}}}]},
    "$defs": {"x": {}},
    "default": {"items": {}},
}


def test_visits_schemas_alone_the_inner_ones_first() -> None:
    paths = []

    def note(part: dict[str, Any], path: str) -> dict[str, Any]:
        paths.append(path)
        return part

    assert mapped(SCHEMA, note) == SCHEMA
    assert paths == [
        "#/properties/a~0~1b/items/0",
        "#/properties/a~0~1b",
        "#/properties/items",
        "#/additionalProperties/anyOf/0",
        "#/additionalProperties",
        "#/$defs/x",
        "#",
    ]


def test_what_a_visit_returns_takes_the_place() -> None:
    changed = mapped(SCHEMA, lambda part, path: part | {"title": path})
    assert isinstance(changed, dict)
    assert changed["properties"]["items"] == {"type": "string", "title": "#/properties/items"}
    assert changed["default"] == SCHEMA["default"]


def test_references_within_the_document_are_followed() -> None:
    assert resolved("#", SCHEMA) is SCHEMA
    assert resolved("#/properties/a~0~1b/items/1", SCHEMA) is True
    for elsewhere in ("#/nothing", "#/properties/a~0~1b/items/2", "http://x/y", "#/$defs/x/y"):
        assert resolved(elsewhere, SCHEMA) is None
