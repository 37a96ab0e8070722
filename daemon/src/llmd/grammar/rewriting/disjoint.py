"""Whether alternatives of ``oneOf`` exclude each other, so that a value of one is a value of exactly one."""

from __future__ import annotations

import itertools
from typing import Any

from llmd.grammar.rewriting.values import spelled, type_of
from llmd.grammar.subschemas import resolved

_MAX_DEPTH = 4
_MAX_ALTERNATIVES = 200


def are_disjoint(alternatives: list[Any], root: Any) -> bool:
    """Whether no value fits two of the schemas; False where that is not seen. ``root`` is the document of references."""
    if len(alternatives) > _MAX_ALTERNATIVES:
        return False
    return all(_exclude(a, b, root, 0) for a, b in itertools.combinations(alternatives, 2))


def _exclude(one: Any, other: Any, root: Any, depth: int) -> bool:
    one, other = _followed(one, root), _followed(other, root)
    if depth > _MAX_DEPTH or not isinstance(one, dict) or not isinstance(other, dict):
        return False
    types, others = _types(one), _types(other)
    if types is not None and others is not None and not types & others:
        return True
    values, other_values = _values(one), _values(other)
    if values is not None and other_values is not None:
        return not values & other_values
    return types == others == {"object"} and _exclude_by_property(one, other, root, depth)


def _followed(schema: Any, root: Any) -> Any:
    """What a schema refers to, where it has nothing of its own that could matter more."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = resolved(schema["$ref"], root)
    return schema


def _types(schema: dict[str, Any]) -> set[str] | None:
    """Types of the values that fit; None: any."""
    named = schema.get("type")
    if named is not None:
        return {_wide(name) for name in ([named] if isinstance(named, str) else named)}
    given = _given(schema)
    return None if given is None else {type_of(value) for value in given}


def _wide(name: str) -> str:
    return "number" if name == "integer" else name


def _values(schema: dict[str, Any]) -> set[str] | None:
    given = _given(schema)
    return None if given is None else {spelled(value) for value in given}


def _given(schema: dict[str, Any]) -> list[Any] | None:
    """The values that fit, where there are only so many."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _exclude_by_property(one: dict[str, Any], other: dict[str, Any], root: Any, depth: int) -> bool:
    """Whether both need a property whose values differ, such as the tag of a union."""
    needed = set(one.get("required", [])) & set(other.get("required", []))
    mine, others = one.get("properties", {}), other.get("properties", {})
    return any(
        _exclude(mine[name], others[name], root, depth + 1)
        for name in needed
        if name in mine and name in others
    )
