"""Compute the set of strings that a schema allows, for string values and names of properties."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llmd.grammar.rewriting.combining import types_of
from llmd.grammar.rewriting.formats import pattern_of_format
from llmd.grammar.rewriting.neutral import without_neutral
from llmd.grammar.rewriting.scope import MAX_REFERENCES, Scope
from llmd.grammar.subschemas import Schema
from llmd.grammar.texts.expressions import Expression
from llmd.grammar.texts.text_sets import TextSets


def pattern_outside(schema: dict[str, Any], key: str, scope: Scope) -> str | None:
    """Return a regular expression of strings that a ``pattern`` or ``format`` forbids; None if it allows all.

    Raises:
        GrammarError: it is too large, or the format has no pattern.
    """
    pattern = schema[key] if key == "pattern" else pattern_of_format(schema[key])
    if pattern is None:
        raise scope.exclusion(f"format {schema[key]}")
    found, size = _outside(pattern)
    scope.spend(size)
    return found


@functools.lru_cache(maxsize=64)
def _outside(pattern: str) -> tuple[str | None, int]:
    sets = TextSets()
    return sets.pattern(sets.complement(sets.matching(pattern))), sets.size


def texts_of(schema: Schema, sets: TextSets, scope: Scope) -> Expression:
    """Return the set of strings that a schema allows."""
    return _Texts(sets, scope).of(schema, 0)


class _Texts:
    def __init__(self, sets: TextSets, scope: Scope) -> None:
        self._sets = sets
        self._scope = scope

    def of(self, schema: Schema, depth: int) -> Expression:
        sets = self._sets
        if isinstance(schema, bool):
            return sets.everything if schema else sets.nothing
        bound = without_neutral(schema)
        if "string" not in types_of(bound):
            return sets.nothing
        return sets.intersection(*self._own(bound), *self._combined(bound, depth))

    def _own(self, schema: dict[str, Any]) -> list[Expression]:
        sets = self._sets
        found = [
            sets.literals(value for value in values if isinstance(value, str)) for values in _values(schema)
        ]
        if "minLength" in schema or "maxLength" in schema:
            found.append(sets.lengths(schema.get("minLength", 0), schema.get("maxLength")))
        if "pattern" in schema:
            found.append(sets.matching(schema["pattern"]))
        if "format" in schema:
            found.append(sets.matching(self._pattern_of_format(schema["format"])))
        return found

    def _pattern_of_format(self, name: str) -> str:
        pattern = pattern_of_format(name)
        if pattern is None:
            raise self._scope.refusal(f"format {name} combined with other string keywords")
        return pattern

    def _combined(self, schema: dict[str, Any], depth: int) -> list[Expression]:
        sets, of = self._sets, functools.partial(self.of, depth=depth)
        found = [of(one) for one in schema.get("allOf", [])]
        if "anyOf" in schema:
            found.append(sets.union(*map(of, schema["anyOf"])))
        if "oneOf" in schema:
            found.append(self._exactly_one([of(one) for one in schema["oneOf"]]))
        if "not" in schema:
            found.append(sets.complement(of(schema["not"])))
        if "if" in schema:
            found.append(self._conditional(schema, of))
        if "$ref" in schema:
            if depth >= MAX_REFERENCES:
                raise self._scope.refusal(f"more than {MAX_REFERENCES} references in a row")
            found.append(self.of(self._scope.target(schema["$ref"]), depth + 1))
        return found

    def _conditional(self, schema: dict[str, Any], of: Callable[[Schema], Expression]) -> Expression:
        sets = self._sets
        condition = of(schema["if"])
        return sets.union(
            sets.intersection(condition, of(schema.get("then", True))),
            sets.intersection(sets.complement(condition), of(schema.get("else", True))),
        )

    def _exactly_one(self, options: list[Expression]) -> Expression:
        sets = self._sets
        return sets.union(
            *(
                sets.intersection(
                    one, *(sets.complement(other) for place2, other in enumerate(options) if place2 != place)
                )
                for place, one in enumerate(options)
            )
        )


def _values(schema: dict[str, Any]) -> list[list[Any]]:
    found = [[schema["const"]]] if "const" in schema else []
    return [*found, schema["enum"]] if isinstance(schema.get("enum"), list) else found
