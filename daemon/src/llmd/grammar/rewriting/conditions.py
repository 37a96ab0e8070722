"""Rewrite ``if``, ``dependentRequired`` and ``dependentSchemas`` to ``anyOf``."""

from __future__ import annotations

from typing import Any

from llmd.grammar.rewriting.combining import all_of, any_of, with_schema, without
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.subschemas import Schema

MAX_DEPENDENT = 10
"""Each subset of this many properties is an alternative."""


def without_if(schema: dict[str, Any]) -> dict[str, Any]:
    """Rewrite ``if`` to two alternatives."""
    condition: Schema = schema["if"]
    opposite: Schema = not condition if isinstance(condition, bool) else {"not": condition}
    options = (
        all_of([condition, schema.get("then", True)]),
        all_of([opposite, schema.get("else", True)]),
    )
    return with_schema(without(schema, "if", "then", "else"), any_of(options))


def without_dependent(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite each dependency to two alternatives: the property is absent, or what it requires is there."""
    names: dict[str, list[str]] = schema.get("dependentRequired", {})
    schemas: dict[str, Schema] = schema.get("dependentSchemas", {})
    found = without(schema, "dependentRequired", "dependentSchemas")
    asking = dict.fromkeys((*names, *schemas))
    if len(asking) > MAX_DEPENDENT:
        raise scope.refusal(f"dependentRequired or dependentSchemas of more than {MAX_DEPENDENT} properties")
    for name in asking:
        needed = [one for one in names.get(name, []) if one != name]
        asked = all_of([{"required": [name, *needed]} if needed else True, schemas.get(name, True)])
        if asked is not True:
            found = with_schema(found, any_of([{"properties": {name: False}}, asked]))
    return found
