"""Negate schemas: one alternative for each keyword that a value can violate.

Only the outermost keywords are negated; ``not`` moves into the subschemas and is rewritten there in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from llmd.grammar.rewriting.combining import TYPES, all_of, any_of, types_of, with_schema, without
from llmd.grammar.rewriting.contains import ways_to_contain
from llmd.grammar.rewriting.neutral import required_names, without_neutral
from llmd.grammar.rewriting.schema_texts import pattern_outside
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.rewriting.unevaluated import has_unevaluated, without_unevaluated
from llmd.grammar.rewriting.values import other_values
from llmd.grammar.subschemas import Schema

MAX_OPTIONAL = 4
"""Each subset of this many optional properties is an alternative."""

Options = Iterator[Schema]


def without_not(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Replace ``not`` by the negation of its schema, restricted to the types of the outer schema."""
    return with_schema(without(schema, "not"), negated(schema["not"], scope, types_of(schema)))


def negated(schema: Schema, scope: Scope, types: list[str] | None = None) -> Schema:
    """Return the negation of a schema, restricted to ``types``.

    Raises:
        GrammarError: it cannot be written as a schema.
    """
    if isinstance(schema, bool):
        return not schema
    wanted = list(TYPES) if types is None else types
    bound = without_neutral(without_unevaluated(schema, scope) if has_unevaluated(schema) else schema)
    found = _Negation(bound, scope)
    options = [*found.other_types(wanted)]
    shared = _kinds(wanted) & _kinds(types_of(bound))
    for keywords, kind, negation in _NEGATIONS:
        if keywords & bound.keys() and (kind is None or kind in shared):
            options += negation(found)
    return any_of(options)


def _kinds(types: list[str]) -> set[str]:
    return {"number" if name == "integer" else name for name in types}


class _Negation:
    """Yields the alternatives of one schema's negation."""

    def __init__(self, schema: dict[str, Any], scope: Scope) -> None:
        self._schema = schema
        self._scope = scope

    def other_types(self, wanted: list[str]) -> Options:
        if "type" not in self._schema:
            return
        own = types_of(self._schema)
        others = [name for name in wanted if name not in own]
        if "integer" in own and "number" in others:
            raise self._scope.exclusion("the type integer among numbers")
        if "integer" in others and "number" in own:
            others.remove("integer")
        if others:
            yield {"type": others}

    def values(self) -> Options:
        for key in ("const", "enum"):
            if key in self._schema:
                yield other_values([self._schema[key]] if key == "const" else list(self._schema[key]))

    def numbers(self) -> Options:
        for key, other in (
            ("minimum", "exclusiveMaximum"),
            ("exclusiveMinimum", "maximum"),
            ("maximum", "exclusiveMinimum"),
            ("exclusiveMaximum", "minimum"),
        ):
            if key in self._schema:
                yield {"type": "number", other: self._schema[key]}
        if "multipleOf" in self._schema:
            raise self._scope.exclusion("multipleOf")

    def texts(self) -> Options:
        if self._schema.get("minLength", 0) > 0:
            yield {"type": "string", "maxLength": self._schema["minLength"] - 1}
        if "maxLength" in self._schema:
            yield {"type": "string", "minLength": self._schema["maxLength"] + 1}
        for key in ("pattern", "format"):
            if key in self._schema:
                pattern = pattern_outside(self._schema, key, self._scope)
                yield False if pattern is None else {"type": "string", "pattern": pattern}

    def lengths(self) -> Options:
        if self._schema.get("minItems", 0) > 0:
            yield {"type": "array", "maxItems": self._schema["minItems"] - 1}
        if "maxItems" in self._schema:
            yield {"type": "array", "minItems": self._schema["maxItems"] + 1}
        if "uniqueItems" in self._schema:
            raise self._scope.exclusion("uniqueItems")

    def items(self) -> Options:
        first = self._schema.get("prefixItems", [])
        for place, item in enumerate(first):
            yield {"type": "array", "prefixItems": [True] * place + [{"not": item}], "minItems": place + 1}
        others = self._schema.get("items", True)
        wanted: Schema = not others if isinstance(others, bool) else {"not": others}
        for way in ways_to_contain(wanted, 1, None, self._scope, start=len(first)):
            yield {"type": "array", **way}

    def contained(self) -> Options:
        wanted, most = self._schema["contains"], self._schema.get("maxContains")
        least = self._schema.get("minContains", 1)
        if least > 0:
            yield {"type": "array", "contains": wanted, "minContains": 0, "maxContains": least - 1}
        if most is not None:
            yield {"type": "array", "contains": wanted, "minContains": most + 1}

    def properties(self) -> Options:
        for name in required_names(self._schema):
            yield {"type": "object", "properties": {name: False}}
        for name, value in self._schema.get("properties", {}).items():
            yield {"type": "object", "properties": {name: {"not": value}}, "required": [name]}
        for key in ("patternProperties", "propertyNames"):
            if key in self._schema:
                raise self._scope.exclusion(f"{key}")
        if self._schema.get("additionalProperties", True) not in (True, {}):
            yield from self._additional()

    def _additional(self) -> Options:
        """Yield objects with an unnamed property: at least one more than a subset of the named ones."""
        names = [*self._schema.get("properties", {})]
        if self._schema["additionalProperties"] is not False:
            raise self._scope.exclusion("additionalProperties with a schema")
        if len(names) > MAX_OPTIONAL:
            raise self._scope.exclusion(f"additionalProperties with more than {MAX_OPTIONAL} properties")
        for there in _choices(names):
            yield {
                "type": "object",
                "properties": {name: name in there for name in names},
                "required": there,
                "minProperties": len(there) + 1,
            }

    def sizes(self) -> Options:
        if self._schema.get("minProperties", 0) > 0:
            yield {"type": "object", "maxProperties": self._schema["minProperties"] - 1}
        if "maxProperties" in self._schema:
            yield {"type": "object", "minProperties": self._schema["maxProperties"] + 1}

    def dependent(self) -> Options:
        for name, needed in self._schema.get("dependentRequired", {}).items():
            for other in needed:
                yield {"type": "object", "properties": {other: False}, "required": [name]}
        for name, needed in self._schema.get("dependentSchemas", {}).items():
            yield {"type": "object", "required": [name], "not": needed}

    def combined(self) -> Options:
        yield from ({"not": one} for one in self._schema.get("allOf", []))
        if "anyOf" in self._schema:
            yield all_of({"not": one} for one in self._schema["anyOf"])
        if "oneOf" in self._schema:
            yield all_of({"not": one} for one in self._schema["oneOf"])
            yield from (all_of(pair) for pair in itertools.combinations(self._schema["oneOf"], 2))
        if "not" in self._schema:
            yield self._schema["not"]

    def conditions(self) -> Options:
        condition = self._schema["if"]
        yield all_of([condition, {"not": self._schema.get("then", True)}])
        yield all_of([{"not": condition}, {"not": self._schema.get("else", True)}])

    def references(self) -> Options:
        yield self._scope.negate(self._schema["$ref"])


def _choices(names: list[str]) -> Iterator[list[str]]:
    for count in range(len(names) + 1):
        yield from map(list, itertools.combinations(names, count))


_NEGATIONS: tuple[
    tuple[frozenset[str], str | None, Callable[[_Negation], Options]], ...
] = (
    (frozenset({"const", "enum"}), None, _Negation.values),
    (frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"}), "number", _Negation.numbers),
    (frozenset({"minLength", "maxLength", "pattern", "format"}), "string", _Negation.texts),
    (frozenset({"minItems", "maxItems", "uniqueItems"}), "array", _Negation.lengths),
    (frozenset({"prefixItems", "items"}), "array", _Negation.items),
    (frozenset({"contains"}), "array", _Negation.contained),
    (
        frozenset({"required", "properties", "patternProperties", "additionalProperties", "propertyNames"}),
        "object",
        _Negation.properties,
    ),
    (frozenset({"minProperties", "maxProperties"}), "object", _Negation.sizes),
    (frozenset({"dependentRequired", "dependentSchemas"}), "object", _Negation.dependent),
    (frozenset({"allOf", "anyOf", "oneOf", "not"}), None, _Negation.combined),
    (frozenset({"if"}), None, _Negation.conditions),
    (frozenset({"$ref"}), None, _Negation.references),
)  # fmt: skip
