"""Rewrite ``minProperties`` and ``maxProperties``: each subset of optional properties is an alternative."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from llmd.grammar.rewriting.combining import for_type, with_schema, without
from llmd.grammar.rewriting.neutral import required_names
from llmd.grammar.rewriting.scope import Scope

MAX_CHOICES = 128


def without_counts(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite bounds on the number of properties so that llguidance can count them.

    It can demand only one property beyond the required ones: of two, the second could repeat the first.
    """
    least, most = schema.get("minProperties", 0), schema.get("maxProperties")
    required = required_names(schema)
    named = schema.get("properties", {})
    optional = [name for name in named if name not in required and named[name] is not False]
    if not optional:
        _check_least(least, len(required), scope)
        return schema
    if 2 ** len(optional) > MAX_CHOICES:
        raise scope.refusal(
            f"minProperties or maxProperties with {len(optional)} optional properties",
            f"use at most {MAX_CHOICES.bit_length() - 1} optional properties",
        )
    is_closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
    options = []
    for there in _choices(optional, least - len(required), most, len(required), is_closed=is_closed):
        _check_least(least, len(required) + len(there), scope)
        absent = {name: False for name in optional if name not in there}
        options.append(
            {"properties": absent, "required": list(there)} if absent else {"required": list(there)}
        )
    bounds = {
        key: schema[key] for key in ("minProperties", "maxProperties") if key in schema and not is_closed
    }
    rest = without(schema, "minProperties", "maxProperties")
    return with_schema(rest, for_type("object", rest, [option | bounds for option in options]))


def _check_least(least: int, num_required: int, scope: Scope) -> None:
    if least > num_required + 1:
        raise scope.refusal(
            "minProperties above 1 and above the number of required ones",
            "name the properties and set additionalProperties to false",
        )


def _choices(
    optional: list[str], least: int, most: int | None, num_required: int, *, is_closed: bool
) -> Iterator[tuple[str, ...]]:
    """Yield the subsets of optional properties; in a closed object only those of the right size."""
    highest = len(optional) if most is None else min(len(optional), most - num_required)
    lowest = max(least, 0) if is_closed else 0
    for count in range(lowest, highest + 1):
        yield from itertools.combinations(optional, count)
