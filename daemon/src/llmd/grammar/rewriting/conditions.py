"""``if``, ``dependentRequired`` and ``dependentSchemas``: what follows from a condition, or its opposite."""

from __future__ import annotations

from typing import Any

from llmd.grammar.rewriting.combining import all_of, any_of, with_schema, without
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.subschemas import Schema

MAX_DEPENDENT = 10
"""Each choice of this many properties is an alternative."""


def without_if(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with ``if`` as two alternatives."""
    condition: Schema = schema["if"]
    opposite: Schema = not condition if isinstance(condition, bool) else {"not": condition}
    options = (
        all_of([condition, schema.get("then", True)]),
        all_of([opposite, schema.get("else", True)]),
    )
    return with_schema(without(schema, "if", "then", "else"), any_of(options))


def without_dependent(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """The schema with each property that asks for others as two alternatives: it is not there, or they are."""
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
