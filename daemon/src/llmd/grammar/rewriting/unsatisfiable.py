"""Simplify schemas that no value fits to ``false``: llguidance rejects documents with such definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.grammar.rewriting.combining import without
from llmd.grammar.subschemas import Schema, mapped


def without_false(schema: dict[str, Any]) -> Schema:
    """Remove alternatives that no value fits; return ``false`` if none is left."""
    if False in schema.get("allOf", []):
        return False
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or False not in choices:
        return schema
    fitting = [choice for choice in choices if choice is not False]
    return schema | {"anyOf": fitting} if fitting else False


def with_definitions(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the document with its definitions; replace references to boolean definitions by the booleans."""
    while fixed := {f"#/$defs/{name}": one for name, one in definitions.items() if isinstance(one, bool)}:
        kept = {name: one for name, one in definitions.items() if not isinstance(one, bool)}
        definitions = {name: _with_booleans(one, fixed) for name, one in kept.items()}
        schema = _with_booleans(schema, fixed)
    return schema | {"$defs": definitions} if definitions and isinstance(schema, dict) else schema


def _with_booleans(schema: Schema, fixed: Mapping[str, bool]) -> Schema:
    """Replace references to booleans by the booleans, and simplify the result."""

    def changed(part: dict[str, Any], _path: str) -> Any:
        reference = part.get("$ref")
        if isinstance(reference, str) and reference in fixed:
            rest = without(part, "$ref")
            part = rest if fixed[reference] else {"allOf": [False]}
        return without_false(part)

    return mapped(schema, changed)
