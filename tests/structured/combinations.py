"""Schemas that combine any keywords at random, over the names and values of `conformity`;
the same ones for the same seed.
"""

from __future__ import annotations

import random
from typing import Any

from tests.structured.conformity import NAMES, SCALARS

MAX_DEPTH = 3
CONSTANTS = (*SCALARS, [1], [True], {"a": 1}, {"b": "a"})
TYPES = ("null", "boolean", "number", "string", "array", "object")
PATTERNS = ("^a", "b$", "a", "^.$", "^[ab]*$", "^(ab|c)")
LEAVES = (
    "type", "type", "const", "enum", "bound", "length", "pattern", "format", "required", "num_items", "num_properties",
)  # fmt: skip
BRANCHES = (
    "properties", "additional", "patterns", "items", "first", "contains", "names", "dependent", "condition", "cases", "not",
    "not", "combined", "combined", "unevaluated", "unique", "reference",
)  # fmt: skip


class CombinationGenerator:
    """Makes one document after the other, with two definitions each."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self) -> dict[str, Any]:
        """A document that uses some of its definitions, or none."""
        return {**self._object(0), "$defs": {"x": self._schema(2), "y": self._schema(2)}}

    def _schema(self, depth: int) -> Any:
        return self._random.choice((True, False)) if self._random.random() < 0.06 else self._object(depth)

    def _object(self, depth: int) -> dict[str, Any]:
        kinds = LEAVES if depth >= MAX_DEPTH else (*LEAVES, *BRANCHES * (2 if depth < 2 else 1))
        found: dict[str, Any] = {}
        for _ in range(self._random.choice((1, 1, 2, 2, 3))):
            kind = self._random.choice(kinds)
            found |= getattr(self, f"_{kind}")(depth)
        return found

    def _inner(self, depth: int) -> Any:
        return self._schema(depth + 1)

    def _some(self, values: Any, most: int) -> list[Any]:
        return self._random.sample(values, self._random.randint(1, most))

    def _type(self, _depth: int) -> dict[str, Any]:
        return {"type": self._random.choice((self._random.choice(TYPES), self._some(TYPES, 3), "integer"))}

    def _const(self, _depth: int) -> dict[str, Any]:
        return {"const": self._random.choice(CONSTANTS)}

    def _enum(self, _depth: int) -> dict[str, Any]:
        return {"enum": self._some(CONSTANTS, 4)}

    def _bound(self, _depth: int) -> dict[str, Any]:
        key = self._random.choice(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
        return {key: self._random.choice((0, 1, 2, 1.5, 2.5))}

    def _length(self, _depth: int) -> dict[str, Any]:
        return {self._random.choice(("minLength", "maxLength")): self._random.randint(0, 3)}

    def _pattern(self, _depth: int) -> dict[str, Any]:
        return {"pattern": self._random.choice(PATTERNS)}

    def _format(self, _depth: int) -> dict[str, Any]:
        return {"format": "date"}

    def _required(self, _depth: int) -> dict[str, Any]:
        return {"required": self._some(NAMES, 2)}

    def _num_items(self, _depth: int) -> dict[str, Any]:
        return {self._random.choice(("minItems", "maxItems")): self._random.randint(0, 3)}

    def _num_properties(self, _depth: int) -> dict[str, Any]:
        return {self._random.choice(("minProperties", "maxProperties")): self._random.randint(0, 3)}

    def _properties(self, depth: int) -> dict[str, Any]:
        return {"properties": {name: self._inner(depth) for name in self._some(NAMES, 2)}}

    def _additional(self, depth: int) -> dict[str, Any]:
        return {"additionalProperties": self._random.choice((False, self._inner(depth)))}

    def _patterns(self, depth: int) -> dict[str, Any]:
        return {"patternProperties": {pattern: self._inner(depth) for pattern in self._some(PATTERNS, 2)}}

    def _items(self, depth: int) -> dict[str, Any]:
        return {"items": self._inner(depth)}

    def _first(self, depth: int) -> dict[str, Any]:
        return {"prefixItems": [self._inner(depth) for _ in range(self._random.randint(1, 2))]}

    def _contains(self, depth: int) -> dict[str, Any]:
        bounds: dict[str, Any] = {"minContains": self._random.randint(0, 2)}
        other: dict[str, Any] = {"maxContains": self._random.randint(0, 2)}
        return {"contains": self._inner(depth), **self._random.choice(({}, bounds, other))}

    def _names(self, depth: int) -> dict[str, Any]:
        return {"propertyNames": self._inner(depth)}

    def _dependent(self, depth: int) -> dict[str, Any]:
        name = self._random.choice(NAMES)
        if self._random.random() < 0.5:
            return {"dependentRequired": {name: self._some(NAMES, 2)}}
        return {"dependentSchemas": {name: self._inner(depth)}}

    def _condition(self, depth: int) -> dict[str, Any]:
        return {"if": self._inner(depth), **self._consequences(depth)}

    def _consequences(self, depth: int) -> dict[str, Any]:
        return {branch: self._inner(depth) for branch in self._some(("then", "else"), 2)}

    def _cases(self, depth: int) -> dict[str, Any]:
        conditions: tuple[dict[str, Any], ...] = (
            {},
            {"required": ["a"]},
            {"type": "object"},
            {"type": "object", "required": ["a"]},
        )
        cases = [
            {
                "if": {"properties": {"a": self._enum(depth)}, **self._random.choice(conditions)},
                **self._consequences(depth),
            }
            for _ in range(self._random.randint(2, 3))
        ]
        return {"allOf": cases}

    def _not(self, depth: int) -> dict[str, Any]:
        return {"not": self._inner(depth)}

    def _combined(self, depth: int) -> dict[str, Any]:
        key = self._random.choice(("allOf", "anyOf", "oneOf"))
        return {key: [self._inner(depth) for _ in range(self._random.randint(1, 3))]}

    def _unevaluated(self, depth: int) -> dict[str, Any]:
        key = self._random.choice(("unevaluatedProperties", "unevaluatedItems"))
        return {key: self._random.choice((False, self._inner(depth)))}

    def _unique(self, _depth: int) -> dict[str, Any]:
        return {"type": "array", "uniqueItems": True, "items": self._enum(0)}

    def _reference(self, _depth: int) -> dict[str, Any]:
        return {"$ref": self._random.choice(("#/$defs/x", "#/$defs/y"))}
