"""Rewrite ``propertyNames`` to ``patternProperties``, and overlapping patterns to disjoint ones."""

from __future__ import annotations

import itertools
from typing import Any

from llmd.grammar.rewriting.combining import all_of, without
from llmd.grammar.rewriting.schema_texts import texts_of
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.subschemas import Schema
from llmd.grammar.texts.text_sets import TextSets

MAX_PATTERNS = 6
"""Each subset of this many patterns may become a pattern."""


def without_property_names(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``propertyNames`` to patterns of all allowed names."""
    sets = TextSets()
    names = texts_of(schema["propertyNames"], sets, scope)
    named: dict[str, Schema] = schema.get("properties", {})
    given: dict[str, Schema] = schema.get("patternProperties", {})
    found = [(sets.matching(pattern), value) for pattern, value in given.items()]
    others = sets.complement(sets.union(sets.literals(named), *(pattern for pattern, _ in found)))
    found.append((others, schema.get("additionalProperties", True)))
    patterns = {sets.pattern(sets.intersection(names, one)): value for one, value in found}
    patterns.pop(None, None)
    allowed = {name: not sets.is_empty(sets.intersection(names, sets.literals([name]))) for name in named}
    scope.spend(sets.size)
    changed = without(schema, "propertyNames") | {"additionalProperties": False}
    if named:
        changed["properties"] = {name: value if allowed[name] else False for name, value in named.items()}
    return changed | {"patternProperties": patterns}


def without_overlaps(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``patternProperties`` so that no name matches two patterns."""
    given: dict[str, Schema] = schema["patternProperties"]
    sets = TextSets()
    found = {pattern: sets.matching(pattern) for pattern in given}
    pairs = itertools.combinations(found.values(), 2)
    is_disjoint = all(sets.is_empty(sets.intersection(*pair)) for pair in pairs)
    scope.spend(sets.size)
    if is_disjoint:
        return schema
    if len(given) > MAX_PATTERNS:
        raise scope.refusal(f"more than {MAX_PATTERNS} patternProperties that overlap")
    changed: dict[str, Schema] = {}
    for chosen in itertools.product((True, False), repeat=len(given)):
        parts = [
            names if is_in else sets.complement(names)
            for is_in, names in zip(chosen, found.values(), strict=True)
        ]
        pattern = sets.pattern(sets.intersection(*parts)) if any(chosen) else None
        if pattern is not None:
            values = itertools.compress(given.values(), chosen)
            changed[pattern] = all_of(values)
    scope.spend(sets.size)
    return schema | {"patternProperties": changed}
