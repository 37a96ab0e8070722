"""Decide whether alternatives of ``oneOf`` exclude each other, so that a value fits at most one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from llmd.grammar.rewriting.neutral import required_names
from llmd.grammar.rewriting.values import spelled, type_of
from llmd.grammar.subschemas import resolved

_MAX_DEPTH = 6
_MAX_ALTERNATIVES = 200


def are_disjoint(alternatives: list[Any], root: Any, types: Iterable[str] | None = None) -> bool:
    """Return whether no value fits two of the schemas; False if unknown.

    ``root`` is the document that references point into; ``types`` are the possible types of the values.
    """
    if len(alternatives) > _MAX_ALTERNATIVES:
        return False
    context = None if types is None else {_wide(name) for name in types}
    return all(_exclude(a, b, root, 0, context) for a, b in itertools.combinations(alternatives, 2))


def _exclude(one: Any, other: Any, root: Any, depth: int, context: set[str] | None = None) -> bool:
    if depth > _MAX_DEPTH:
        return False
    parts, others = _parts(one, root, 0), _parts(other, root, 0)
    if False in parts or False in others:
        return True
    if _excluded_by_choices(parts, other, root, depth, context) or _excluded_by_choices(
        others, one, root, depth, context
    ):
        return True
    types = _types([*parts, *others], context)
    if types == set() or _any_pair(parts, others, _have_other_values):
        return True
    if types == {"number"}:
        return _any_pair(parts, others, _are_apart)
    return types == {"object"} and _exclude_by_property(parts, others, root, depth)


def _parts(schema: Any, root: Any, depth: int) -> list[Any]:
    """Return schemas that a value must all fit: the schema, members of ``allOf``, targets of references."""
    if not isinstance(schema, dict):
        return [False] if schema is False else []
    inner = [*schema.get("allOf", [])]
    if isinstance(schema.get("$ref"), str):
        inner.append(resolved(schema["$ref"], root))
    found: list[Any] = [schema]
    if depth < _MAX_DEPTH:
        for one in inner:
            found += _parts(one, root, depth + 1)
    return found


def _any_pair(parts: list[Any], others: list[Any], test: Callable[[Any, Any], bool]) -> bool:
    return any(test(one, other) for one in parts for other in others)


def _excluded_by_choices(
    parts: list[Any], other: Any, root: Any, depth: int, context: set[str] | None
) -> bool:
    """Return whether all alternatives of one part exclude the other schema."""
    choices = [[*part.get("anyOf", part.get("oneOf", []))] for part in parts]
    return any(
        all(_exclude(choice, other, root, depth + 1, context) for choice in found)
        for found in choices
        if found
    )


def _types(parts: list[Any], context: set[str] | None) -> set[str] | None:
    """Return the types of values that fit all of the schemas; None: any."""
    known = [found for part in parts if (found := _own_types(part)) is not None]
    known += [] if context is None else [context]
    return set.intersection(*known) if known else None


def _own_types(schema: dict[str, Any]) -> set[str] | None:
    if "type" in schema:
        named = schema["type"]
        return {_wide(name) for name in ([named] if isinstance(named, str) else named)}
    given = _given(schema)
    return None if given is None else {type_of(value) for value in given}


def _wide(name: str) -> str:
    return "number" if name == "integer" else name


def _values(schema: dict[str, Any]) -> set[str] | None:
    given = _given(schema)
    return None if given is None else {spelled(value) for value in given}


def _given(schema: dict[str, Any]) -> list[Any] | None:
    """Return the listed values of a schema; None if it does not list them."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _have_other_values(one: dict[str, Any], other: dict[str, Any]) -> bool:
    values, others = _values(one), _values(other)
    return values is not None and others is not None and not values & others


def _are_apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether all numbers of one schema are below those of the other."""
    (low, high), (other_low, other_high) = _range(one), _range(other)
    return high < other_low or other_high < low


def _range(schema: dict[str, Any]) -> tuple[float, float]:
    numbers = [value for value in _given(schema) or [] if type_of(value) == "number"]
    if numbers:
        return min(numbers), max(numbers)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    return low, min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))


def _exclude_by_property(parts: list[Any], others: list[Any], root: Any, depth: int) -> bool:
    """Return whether a required property cannot fit both, such as the tag of a tagged union."""
    needed = dict.fromkeys(name for part in (*parts, *others) for name in required_names(part))
    return any(_exclude(_property(parts, name), _property(others, name), root, depth + 1) for name in needed)


def _property(parts: list[Any], name: str) -> Any:
    """Return the schema of a property in all parts, or a wider one."""
    found: list[Any] = []
    for part in parts:
        named = part.get("properties", {})
        if name in named:
            found.append(named[name])
        elif part.get("additionalProperties") is False and not part.get("patternProperties"):
            found.append(False)
    return {"allOf": found}
