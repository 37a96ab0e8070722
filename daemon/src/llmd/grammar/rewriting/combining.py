"""Combine schemas with as little nesting as possible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llmd.grammar.subschemas import Schema

TYPES = ("null", "boolean", "number", "string", "array", "object")


def all_of(schemas: Iterable[Schema]) -> Schema:
    """Return a schema for values that fit all of the schemas."""
    kept = [schema for schema in schemas if schema is not True and schema != {}]
    if False in kept:
        return False
    return {"allOf": kept} if len(kept) > 1 else kept[0] if kept else True


def any_of(schemas: Iterable[Schema]) -> Schema:
    """Return a schema for values that fit at least one of the schemas."""
    kept = [schema for schema in schemas if schema is not False]
    if True in kept or {} in kept:
        return True
    return {"anyOf": kept} if len(kept) > 1 else kept[0] if kept else False


def with_schema(schema: dict[str, Any], other: Schema) -> dict[str, Any]:
    """Return a schema for values that fit both schemas."""
    if other is True:
        return schema
    if isinstance(other, dict) and other.keys() <= {"anyOf"} and "anyOf" not in schema:
        return schema | other
    return schema | {"allOf": [*schema.get("allOf", []), other]}


def without(schema: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return the schema without some keywords."""
    return {key: value for key, value in schema.items() if key not in keys}


def types_of(schema: dict[str, Any]) -> list[str]:
    """Return the types that the ``type`` of a schema allows."""
    named = schema.get("type", list(TYPES))
    return [named] if isinstance(named, str) else list(named)


def for_type(name: str, schema: dict[str, Any], options: Iterable[dict[str, Any]]) -> Schema:
    """Apply alternatives to values of one type; the other types that ``schema`` allows stay unconstrained."""
    allowed = types_of(schema)
    others = [one for one in allowed if one != name]
    bound = [{"type": name, **option} for option in options] if name in allowed else []
    return any_of([*bound, *([{"type": others}] if others else [])])
