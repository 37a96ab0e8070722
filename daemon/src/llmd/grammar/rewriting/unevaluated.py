"""Rewrite ``unevaluatedProperties`` and ``unevaluatedItems`` to alternatives that fix what is evaluated.

If several alternatives of ``anyOf`` fit, what any of them evaluates counts, so each subset of them becomes an
alternative. A subset does not exclude the others: if these fit too, less counts as evaluated, never more.

Source: JSON Schema Core, draft 2020-12, section 11.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from llmd.grammar.rewriting.combining import all_of, any_of, without
from llmd.grammar.rewriting.disjoint import are_disjoint
from llmd.grammar.rewriting.scope import MAX_REFERENCES, Scope
from llmd.grammar.subschemas import Schema

MAX_BRANCHES = 128
_APPLICATORS = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "$ref")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def has_unevaluated(schema: dict[str, Any]) -> bool:
    """Return whether a schema constrains what is not evaluated."""
    return any(schema.get(key, True) not in (True, {}) for key in _UNEVALUATED)


class Branch(Struct, frozen=True):
    """One way to fit a schema: values fit all ``schemas``; the other fields are what these evaluate."""

    schemas: tuple[Schema, ...] = ()
    names: frozenset[str] = frozenset()
    """Names of properties."""
    patterns: frozenset[str] = frozenset()
    """Patterns of names of properties."""
    all_properties: bool = False
    num_items: int = 0
    """Number of first items."""
    all_items: bool = False
    contained: tuple[Schema, ...] = ()
    """Schemas of ``contains``: items that fit one are evaluated."""

    def __add__(self, other: Branch) -> Branch:
        return Branch(
            self.schemas + other.schemas,
            self.names | other.names,
            self.patterns | other.patterns,
            self.all_properties or other.all_properties,
            max(self.num_items, other.num_items),
            self.all_items or other.all_items,
            self.contained + other.contained,
        )

    @property
    def evaluates(self) -> bool:
        """Whether anything is evaluated."""
        return self != Branch(self.schemas)


def without_unevaluated(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite a schema to alternatives that state which properties and items are allowed."""
    branches = _Branches(scope).of(schema, 0)
    found = any_of(all_of(branch.schemas) for branch in branches)
    return found if isinstance(found, dict) else {"allOf": [found]}


class _Branches:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def of(self, schema: Schema, depth: int) -> list[Branch]:
        if isinstance(schema, bool) or not schema:
            return [] if schema is False else [Branch()]
        if depth > MAX_REFERENCES:
            raise self._scope.refusal("unevaluatedProperties or unevaluatedItems that refers to itself")
        branches = [_own(schema)]
        for parts in self._parts(schema, depth + 1):
            branches = [branch + part for branch in branches for part in parts]
            if len(branches) > MAX_BRANCHES:
                raise self._scope.refusal(
                    "unevaluatedProperties or unevaluatedItems with too many alternatives",
                    "name all properties in one schema and set additionalProperties to false",
                )
        return [_closed(branch, schema) for branch in branches]

    def _parts(self, schema: dict[str, Any], depth: int) -> Iterable[list[Branch]]:
        if "$ref" in schema:
            yield self._opaque({"$ref": schema["$ref"]}, self.of(self._scope.target(schema["$ref"]), depth))
        for one in schema.get("allOf", []):
            yield self._opaque(one, self.of(one, depth))
        if "anyOf" in schema:
            yield self._opaque({"anyOf": schema["anyOf"]}, self._any(schema["anyOf"], depth))
        if "oneOf" in schema:
            yield self._opaque({"oneOf": schema["oneOf"]}, self._one(schema["oneOf"], depth))
        if "if" in schema:
            yield self._condition(schema, depth)
        for name, asked in schema.get("dependentSchemas", {}).items():
            present = {"type": "object", "required": [name]}
            absent = Branch(({"properties": {name: False}},))
            yield [absent, *(Branch((present,)) + branch for branch in self.of(asked, depth))]

    def _opaque(self, schema: Schema, branches: list[Branch]) -> list[Branch]:
        """Return ``schema`` as one branch if its branches evaluate nothing."""
        return branches if any(branch.evaluates for branch in branches) else [Branch((schema,))]

    def _any(self, choices: list[Schema], depth: int) -> list[Branch]:
        """Return the branches of each subset of alternatives that can fit together."""
        alone = [self.of(choice, depth) for choice in choices]
        found: list[Branch] = []
        for count in range(1, len(choices) + 1):
            for chosen in itertools.combinations(range(len(choices)), count):
                if count > 1 and self._exclude_each_other([choices[place] for place in chosen]):
                    continue
                every = itertools.product(*(alone[place] for place in chosen))
                found += [sum(together[1:], together[0]) for together in every]
                self._check(found)
        return found

    def _check(self, branches: list[Branch]) -> None:
        if len(branches) > MAX_BRANCHES:
            raise self._scope.refusal("unevaluatedProperties or unevaluatedItems with too many alternatives")

    def _exclude_each_other(self, choices: list[Schema]) -> bool:
        return any(are_disjoint([*pair], self._scope.root) for pair in itertools.combinations(choices, 2))

    def _one(self, choices: list[Schema], depth: int) -> list[Branch]:
        found: list[Branch] = []
        for place, choice in enumerate(choices):
            others = tuple(
                {"not": other}
                for number, other in enumerate(choices)
                if number != place and not are_disjoint([choice, other], self._scope.root)
            )
            found += [branch + Branch(others) for branch in self.of(choice, depth)]
        return found

    def _condition(self, schema: dict[str, Any], depth: int) -> list[Branch]:
        condition = schema["if"]
        opposite: Schema = not condition if isinstance(condition, bool) else {"not": condition}
        fits = itertools.product(self.of(condition, depth), self.of(schema.get("then", True), depth))
        fails = [] if opposite is False else self.of(schema.get("else", True), depth)
        return [one + then for one, then in fits] + [Branch((opposite,)) + other for other in fails]


def _own(schema: dict[str, Any]) -> Branch:
    """Return what a schema constrains and evaluates without its applicators."""
    return Branch(
        schemas=(without(schema, *_APPLICATORS, *_UNEVALUATED) or True,),
        names=frozenset(schema.get("properties", {})),
        patterns=frozenset(schema.get("patternProperties", {})),
        all_properties="additionalProperties" in schema,
        num_items=len(schema.get("prefixItems", [])),
        all_items="items" in schema,
        contained=(schema["contains"],) if "contains" in schema else (),
    )


def _closed(branch: Branch, schema: dict[str, Any]) -> Branch:
    """Apply the ``unevaluated`` keywords of a schema to a branch; then everything is evaluated."""
    if "unevaluatedProperties" in schema:
        bound: dict[str, Any] = {
            "properties": dict.fromkeys(sorted(branch.names), True),
            "patternProperties": dict.fromkeys(sorted(branch.patterns), True),
            "additionalProperties": schema["unevaluatedProperties"],
        }
        bounds = (
            () if branch.all_properties else ({key: value for key, value in bound.items() if value != {}},)
        )
        branch += Branch(bounds, all_properties=True)
    if "unevaluatedItems" in schema:
        items = any_of([*branch.contained, schema["unevaluatedItems"]])
        first = {"prefixItems": [True] * branch.num_items} if branch.num_items else {}
        bounds = () if branch.all_items else ({**first, "items": items},)
        branch += Branch(bounds, all_items=True)
    return branch
