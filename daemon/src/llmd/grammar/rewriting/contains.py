"""Rewrite ``contains``: matching items are among the first few; each choice of indices is an alternative."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

from llmd.grammar.rewriting.combining import for_type, with_schema, without
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.subschemas import Schema

MAX_PLACES = 12
"""Matching items are among this many first items."""
MAX_WAYS = 24
"""Limit of alternatives: llguidance follows all at once, and two ``contains`` multiply them."""
MAX_REPEATED_LEN = 40
"""Longer item schemas become a definition, since each alternative repeats them."""
LEAST_PLACES = 4


def without_contains(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``contains``, ``minContains`` and ``maxContains`` to alternatives of ``prefixItems``."""
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    rest = without(schema, "contains", "minContains", "maxContains")
    ways = ways_to_contain(schema["contains"], least, most, scope)
    return with_schema(rest, for_type("array", schema, ways))


def ways_to_contain(
    wanted: Schema, least: int, most: int | None, scope: Scope, *, start: int = 0
) -> list[dict[str, Any]]:
    """Return alternatives for arrays with ``least`` to ``most`` matching items from index ``start`` on."""
    if wanted is True or wanted == {}:
        return [{"minItems": start + least} | ({} if most is None else {"maxItems": start + most})]
    if isinstance(wanted, bool):
        return [] if least else [{}]
    if len(json.dumps(wanted)) > MAX_REPEATED_LEN:
        wanted = scope.define(wanted, "contained")
    if most is not None and least > most:
        return []
    places = _places(least, most)
    if places is None:
        raise scope.refusal(
            f"contains with minContains {least} and maxContains {most}, which needs more than {MAX_WAYS} alternatives",
            "ask for fewer matching items",
        )
    other = True if most is None else _opposite(wanted, scope)
    counts = range(least, (least if most is None else most) + 1)
    return [_way(chosen, wanted, other, start) for chosen in _choices(counts, places)]


def _opposite(wanted: dict[str, Any], scope: Scope) -> dict[str, Any]:
    opposite = {"not": wanted}
    return scope.define(opposite, "other") if len(json.dumps(wanted)) > MAX_REPEATED_LEN else opposite


def _places(least: int, most: int | None) -> int | None:
    """Return how many of the first items may match; None if every number gives too many alternatives."""
    counts = range(least, (least if most is None else most) + 1)
    for places in range(MAX_PLACES, 0, -1):
        if places >= max(counts.stop - 1, min(LEAST_PLACES, MAX_PLACES)) and (
            sum(math.comb(places, count) for count in counts) <= MAX_WAYS
        ):
            return places
    return None


def _choices(counts: range, places: int) -> Iterator[tuple[int, ...]]:
    for count in counts:
        yield from itertools.combinations(range(places), count)


def _way(chosen: tuple[int, ...], wanted: Schema, other: Schema, start: int) -> dict[str, Any]:
    """Return a schema whose chosen items match; ``other`` is the schema of all other items."""
    length = chosen[-1] + 1 if chosen else 0
    items = [wanted if place in chosen else other for place in range(length)]
    way: dict[str, Any] = {"prefixItems": [True] * start + items} if start + length else {}
    way |= {"minItems": start + length} if length else {}
    return way if other is True else way | {"items": other}
