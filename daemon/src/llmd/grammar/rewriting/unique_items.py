"""Rewrite ``uniqueItems`` if only a few lists have no item twice: each of them is an alternative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmd.grammar.rewriting.combining import for_type, types_of, with_schema, without
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.rewriting.values import spelled, type_of
from llmd.grammar.subschemas import Schema

MAX_LISTS = 400
"""Enough for all orders of five values."""
_HINT = "give items an enum of at most five values, or check it in the answer"


def without_unique_items(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``uniqueItems`` to an ``enum`` of the lists that it allows."""
    rest = without(schema, "uniqueItems")
    if schema["uniqueItems"] is not True or schema.get("maxItems", 2) < 2 or "array" not in types_of(rest):
        return rest
    lists: list[list[Any]] = []
    for one in _lists(schema, [], scope):
        lists.append(one)
        if len(lists) > MAX_LISTS:
            raise scope.refusal(f"uniqueItems with more than {MAX_LISTS} different lists", _HINT)
    least = schema.get("minItems", 0)
    fitting = [one for one in lists if len(one) >= least]
    bare = without(rest, "items", "prefixItems", "minItems", "maxItems")
    return with_schema(bare, for_type("array", bare, [{"enum": fitting}] if fitting else []))


def _lists(schema: dict[str, Any], found: list[Any], scope: Scope) -> Iterator[list[Any]]:
    """Yield all lists that begin with ``found``; a list comes before its extensions."""
    yield found
    if len(found) >= schema.get("maxItems", len(found) + 1):
        return
    first = schema.get("prefixItems", [])
    item = first[len(found)] if len(found) < len(first) else schema.get("items", True)
    taken = {spelled(one) for one in found}
    for value in _values_of(item, scope):
        if spelled(value) not in taken:
            yield from _lists(schema, [*found, value], scope)


def _values_of(item: Schema, scope: Scope) -> list[Any]:
    """Return the values of an item; raise `GrammarError` if they cannot be listed."""
    item = scope.followed(item)
    if item is False:
        return []
    values = _listed(item) if isinstance(item, dict) else None
    if values is None:
        raise scope.refusal("uniqueItems", _HINT)
    return list({spelled(value): value for value in values}.values())


def _is_integer(value: Any, types: list[str]) -> bool:
    return "integer" in types and type_of(value) == "number" and value == int(value)


def _listed(item: dict[str, Any]) -> list[Any] | None:
    allowed: dict[str, list[Any]] = {"boolean": [True, False], "null": [None]}
    named = types_of(item)
    known = {"type", "const", "enum", "title", "description", "default", "examples", "$comment"}
    if not item.keys() <= known:
        return None
    if "const" in item or "enum" in item:
        values = [item["const"]] if "const" in item else item["enum"]
        if {"const", "enum"} <= item.keys():
            return None
        return [value for value in values if type_of(value) in named or _is_integer(value, named)]
    if set(named) <= allowed.keys():
        return [value for name in named for value in allowed[name]]
    return None
