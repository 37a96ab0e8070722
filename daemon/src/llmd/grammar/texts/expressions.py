"""Regular expressions with intersection and complement, as a graph that shares equal expressions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from llmd.api.errors import GrammarError
from llmd.grammar.texts.characters import Ranges, contains

Kind = Literal["nothing", "empty", "characters", "sequence", "union", "intersection", "complement", "repeat"]


MAX_EXPRESSIONS = 30_000


class Expression:
    """An expression. `Expressions` creates each one once, so they are compared by identity."""

    __slots__ = ("is_nullable", "kind", "number", "parts", "ranges")

    def __init__(
        self, kind: Kind, number: int, parts: tuple[Expression, ...], ranges: Ranges, *, is_nullable: bool
    ) -> None:
        self.kind = kind
        self.number = number
        self.parts = parts
        self.ranges = ranges
        self.is_nullable = is_nullable
        """Whether the empty text matches."""


class Expressions:
    """Creates expressions and their derivatives."""

    def __init__(self) -> None:
        self._made: dict[object, Expression] = {}
        self._derivatives: dict[tuple[int, int], Expression] = {}
        self.nothing = self._one("nothing", is_nullable=False)
        self.empty = self._one("empty", is_nullable=True)
        self.anything = self.complement(self.nothing)

    @property
    def count(self) -> int:
        """How many expressions were created."""
        return len(self._made)

    def _one(
        self, kind: Kind, parts: tuple[Expression, ...] = (), ranges: Ranges = (), *, is_nullable: bool
    ) -> Expression:
        key = (kind, tuple(part.number for part in parts), ranges)
        if key not in self._made:
            if len(self._made) >= MAX_EXPRESSIONS:
                raise GrammarError(
                    "the JSON schema combines string patterns in a way that is too large to be enforced",
                    hint="use shorter patterns",
                )
            self._made[key] = Expression(kind, len(self._made), parts, ranges, is_nullable=is_nullable)
        return self._made[key]

    def characters(self, ranges: Ranges) -> Expression:
        """Match one of some characters."""
        return self._one("characters", (), ranges, is_nullable=False) if ranges else self.nothing

    def literal(self, text: str) -> Expression:
        """Match exactly one text."""
        return self.sequence(*(self.characters(((ord(sign), ord(sign)),)) for sign in text))

    def sequence(self, *parts: Expression) -> Expression:
        """Match the parts one after the other."""
        found = self.empty
        for part in reversed(parts):
            found = self._pair(part, found)
        return found

    def _pair(self, first: Expression, rest: Expression) -> Expression:
        if self.nothing in (first, rest):
            return self.nothing
        if first is self.empty:
            return rest
        if rest is self.empty:
            return first
        if first.kind == "sequence":  # nested to the right, so that equal sequences are shared
            return self._pair(first.parts[0], self._pair(first.parts[1], rest))
        is_nullable = first.is_nullable and rest.is_nullable
        return self._one("sequence", (first, rest), is_nullable=is_nullable)

    def optional(self, parts: list[Expression]) -> Expression:
        """Match any number of the parts from the first on, including none."""
        found = self.empty
        for part in reversed(parts):
            found = self.union([self.empty, self._pair(part, found)])
        return found

    def union(self, parts: Iterable[Expression]) -> Expression:
        """Match any of the parts."""
        kept = self._flat("union", parts)
        kept.pop(self.nothing.number, None)
        if self.anything.number in kept:
            return self.anything
        if len(kept) < 2:
            return next(iter(kept.values()), self.nothing)
        ordered = tuple(kept[number] for number in sorted(kept))
        return self._one("union", ordered, is_nullable=any(part.is_nullable for part in ordered))

    def intersection(self, parts: Iterable[Expression]) -> Expression:
        """Match all of the parts at once."""
        kept = self._flat("intersection", parts)
        kept.pop(self.anything.number, None)
        if self.nothing.number in kept:
            return self.nothing
        if len(kept) < 2:
            return next(iter(kept.values()), self.anything)
        ordered = tuple(kept[number] for number in sorted(kept))
        return self._one("intersection", ordered, is_nullable=all(part.is_nullable for part in ordered))

    def _flat(self, kind: Kind, parts: Iterable[Expression]) -> dict[int, Expression]:
        found: dict[int, Expression] = {}
        for part in parts:
            inner = part.parts if part.kind == kind else (part,)
            found |= {one.number: one for one in inner}
        return found

    def complement(self, part: Expression) -> Expression:
        """Match what the part does not match."""
        if part.kind == "complement":
            return part.parts[0]
        return self._one("complement", (part,), is_nullable=not part.is_nullable)

    def repeat(self, part: Expression) -> Expression:
        """Match the part any number of times."""
        if part in (self.nothing, self.empty):
            return self.empty
        if part.kind == "repeat":
            return part
        return self._one("repeat", (part,), is_nullable=True)

    def ranges(self, expression: Expression) -> list[Ranges]:
        """Return the sets of characters that an expression distinguishes."""
        seen: set[int] = set()
        found: dict[Ranges, None] = {}
        waiting = [expression]
        while waiting:
            one = waiting.pop()
            if one.number not in seen:
                seen.add(one.number)
                waiting += one.parts
                found |= {one.ranges: None} if one.ranges else {}
        return [*found]

    def derivative(self, expression: Expression, code: int) -> Expression:
        """Return the derivative by a character: what may follow it."""
        key = (expression.number, code)
        if key not in self._derivatives:
            self._derivatives[key] = self._derived(expression, code)
        return self._derivatives[key]

    def _derived(self, expression: Expression, code: int) -> Expression:
        parts = expression.parts
        found = self.nothing
        match expression.kind:
            case "characters":
                found = self.empty if contains(expression.ranges, code) else self.nothing
            case "sequence":
                found = self._pair(self.derivative(parts[0], code), parts[1])
                if parts[0].is_nullable:
                    found = self.union([found, self.derivative(parts[1], code)])
            case "union":
                found = self.union(self.derivative(part, code) for part in parts)
            case "intersection":
                found = self.intersection(self.derivative(part, code) for part in parts)
            case "complement":
                found = self.complement(self.derivative(parts[0], code))
            case "repeat":
                found = self._pair(self.derivative(parts[0], code), expression)
        return found
