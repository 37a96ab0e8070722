"""Rewrite ``oneOf`` to ``anyOf`` if its alternatives exclude each other or can be made to."""

from __future__ import annotations

from typing import Any

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.combining import all_of, any_of, types_of, with_schema, without
from llmd.grammar.rewriting.disjoint import are_disjoint
from llmd.grammar.rewriting.negation import negated
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.subschemas import Schema

MAX_OVERLAPPING = 8
"""How many overlapping alternatives can be made to exclude each other."""


def without_one_of(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``oneOf`` to alternatives that exclude each other."""
    choices: list[Schema] = [choice for choice in schema["oneOf"] if choice is not False]
    rest = without(schema, "oneOf")
    if are_disjoint(choices, scope.root, types_of(rest)):
        return _in_place(schema, choices)
    if len(choices) > MAX_OVERLAPPING:
        raise _overlap(scope)
    try:
        options = [_alone(choices, place, rest, scope) for place in range(len(choices))]
    except GrammarError as error:
        raise _overlap(scope, error.message) from error
    return with_schema(rest, any_of(options))


def _in_place(schema: dict[str, Any], choices: list[Schema]) -> dict[str, Any]:
    """Replace ``oneOf`` in place: the order of keywords is the order of properties in the answer."""
    if "anyOf" in schema or not choices:
        return with_schema(without(schema, "oneOf"), {"anyOf": choices})
    return {
        "anyOf" if key == "oneOf" else key: choices if key == "oneOf" else value
        for key, value in schema.items()
    }


def _alone(choices: list[Schema], place: int, rest: dict[str, Any], scope: Scope) -> Schema:
    """Return a schema for values that fit one alternative but none that may overlap it."""
    own = scope.followed(choices[place])
    others = [
        choice
        for number, choice in enumerate(choices)
        if number != place and not are_disjoint([choices[place], choice], scope.root, types_of(rest))
    ]
    types = types_of(own) if isinstance(own, dict) and "type" in own else types_of(rest)
    return all_of([choices[place], *(negated(scope.followed(other), scope, types) for other in others)])


def _overlap(scope: Scope, reason: str = "") -> GrammarError:
    why = f": {reason}" if reason else ""
    return GrammarError(
        f"the JSON schema has oneOf at {scope.path}, whose alternatives do not exclude each other{why}",
        hint="use anyOf, or give each alternative a required property with a different const",
    )
