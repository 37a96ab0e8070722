"""Schemas of every kind that can be enforced, nested at random; the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

WORDS = ("id", "name", "größe", "tags", "a b", "x", "kind", "漢字", "size", "$ref")
VALUES: tuple[Any, ...] = ("a", "größer", 'q"q', "😀", "", 0, -7, 2.5, True, None, [1, "x"], {"k": None})
PATTERNS = (
    "^[a-z]{1,6}$",
    "^[A-Z][a-z]{0,4}$",
    "^(on|off)$",
    "^[0-9]{2}:[0-9]{2}$",
    "^[äöü ]{1,4}$",
    "^.{0,3}!$",
)
FORMATS = ("date", "time", "date-time", "ipv4", "uuid", "email", "duration")
MAX_DEPTH = 3


class SchemaGenerator:
    """Makes one schema after the other; objects are closed and texts short, so that answers end soon."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self) -> Schema:
        """A document: sometimes with definitions that it refers to, also to itself."""
        if self._random.random() < 0.25:
            return self._with_definitions()
        return self._any(0)

    def _any(self, depth: int) -> Schema:
        leaves: list[Callable[[int], Schema]] = [
            self._text,
            self._integer,
            self._number,
            self._value,
            self._plain,
        ]
        branches = [self._object, self._array, self._any_of, self._one_of, self._all_of]
        kinds = (
            leaves if depth >= MAX_DEPTH else branches * 2 + leaves if depth == 0 else branches + leaves * 2
        )
        return self._random.choice(kinds)(depth)

    def _text(self, _depth: int) -> Schema:
        form = self._random.randrange(4)
        if form == 0:
            return {"type": "string", "pattern": self._random.choice(PATTERNS)}
        if form == 1:
            return {"type": "string", "format": self._random.choice(FORMATS), "maxLength": 40}
        least = self._random.randrange(4)
        return {"type": "string", "minLength": least, "maxLength": least + self._random.randrange(6)}

    def _integer(self, _depth: int) -> Schema:
        low = self._random.randrange(-1000, 1000)
        high = low + self._random.randrange(2, 3000)
        bounds = {"minimum": low, "maximum": high}
        if self._random.random() < 0.3:
            bounds = {"exclusiveMinimum": low - 1, "exclusiveMaximum": high + 1}
        if self._random.random() < 0.2:
            bounds["multipleOf"] = self._random.choice((1, 2))
        return {"type": "integer", **bounds}

    def _number(self, _depth: int) -> Schema:
        low = self._random.randrange(-100, 100) / 4
        return {"type": "number", "minimum": low, "maximum": low + self._random.randrange(1, 50) / 4}

    def _value(self, _depth: int) -> Schema:
        if self._random.random() < 0.3:
            return {"const": self._random.choice(VALUES)}
        return {"enum": self._random.sample(VALUES, self._random.randrange(1, 5))}

    def _plain(self, _depth: int) -> Schema:
        return {"type": self._random.choice(("boolean", "null", ["boolean", "null"]))}

    def _object(self, depth: int) -> Schema:
        names = self._random.sample(WORDS, self._random.randrange(1, 5))
        more: Any = False if self._random.random() < 0.8 else self._plain(depth)
        return {
            "type": "object",
            "properties": {name: self._any(depth + 1) for name in names},
            "required": [name for name in names if self._random.random() < 0.6],
            "additionalProperties": more,
        }

    def _array(self, depth: int) -> Schema:
        least = self._random.randrange(3)
        if self._random.random() < 0.3:
            first = [self._any(depth + 1) for _ in range(self._random.randrange(1, 4))]
            return {"type": "array", "prefixItems": first, "items": False, "minItems": min(least, len(first))}
        return {
            "type": "array",
            "items": self._any(depth + 1),
            "minItems": least,
            "maxItems": least + self._random.randrange(3),
        }

    def _any_of(self, depth: int) -> Schema:
        return {"anyOf": [self._any(depth + 1) for _ in range(self._random.randrange(2, 4))]}

    def _one_of(self, depth: int) -> Schema:
        if self._random.random() < 0.5:
            return {
                "oneOf": [self._tagged(tag, depth) for tag in self._random.sample(("cat", "dog", "cow"), 2)]
            }
        return {"oneOf": [self._text(depth), self._integer(depth), {"type": "null"}]}

    def _tagged(self, tag: str, depth: int) -> Schema:
        properties = {"kind": {"const": tag}, "value": self._any(depth + 1)}
        return {
            "type": "object",
            "properties": properties,
            "required": ["kind", "value"],
            "additionalProperties": False,
        }

    def _all_of(self, depth: int) -> Schema:
        low = self._random.randrange(50)
        return {
            "allOf": [{"type": "integer"}, {"minimum": low}, {"maximum": low + self._random.randrange(9)}]
        }

    def _with_definitions(self) -> Schema:
        """A part that is used twice, and one that may hold itself."""
        inner = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}
        node = {"value": {"$ref": "#/$defs/part"}, "next": inner}
        return {
            "$defs": {
                "part": self._any(2),
                "node": {
                    "type": "object",
                    "properties": node,
                    "required": [*node],
                    "additionalProperties": False,
                },
            },
            "type": "object",
            "properties": {"first": {"$ref": "#/$defs/part"}, "list": {"$ref": "#/$defs/node"}},
            "required": ["first", "list"],
            "additionalProperties": False,
        }
