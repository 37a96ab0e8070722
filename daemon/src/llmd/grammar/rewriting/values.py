"""Write a schema for all values except some."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from llmd.grammar.rewriting.combining import TYPES, all_of, any_of
from llmd.grammar.subschemas import Schema
from llmd.grammar.texts.other_texts import pattern_of_others

_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def type_of(value: Any) -> str:
    """Return the JSON Schema type of a value."""
    return _TYPES.get(type(value), "number")


def spelled(value: Any) -> str:
    """Return the same text for equal values: 1.0 equals 1 at any depth, and the order of keys is ignored."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def other_values(values: list[Any]) -> Schema:
    """Return a schema for everything except the values."""
    by_type: dict[str, list[Any]] = {name: [] for name in TYPES}
    for value in values:
        by_type[type_of(value)].append(value)
    free = [name for name in TYPES if not by_type[name]]
    bound = [option for name in TYPES if by_type[name] for option in _OTHERS[name](by_type[name])]
    return any_of([{"type": free}, *bound] if free else bound)


def _booleans(values: list[Any]) -> Iterator[Schema]:
    yield from ({"const": value} for value in (True, False) if value not in values)


def _numbers(values: list[Any]) -> Iterator[Schema]:
    """Yield the ranges below the least value, between neighbours, and above the greatest."""
    ends = [None, *sorted(set(values)), None]
    for low, high in itertools.pairwise(ends):
        bounds = {"exclusiveMinimum": low, "exclusiveMaximum": high}
        yield {"type": "number"} | {key: end for key, end in bounds.items() if end is not None}


def _texts(values: list[Any]) -> Iterator[Schema]:
    yield {"type": "string", "pattern": pattern_of_others(values)}


def _arrays(values: list[Any]) -> Iterator[Schema]:
    yield {"type": "array", **_fitting_all(any_of(_other_arrays(value)) for value in values)}


def _objects(values: list[Any]) -> Iterator[Schema]:
    yield {"type": "object", **_fitting_all(any_of(_other_objects(value)) for value in values)}


def _fitting_all(schemas: Iterable[Schema]) -> dict[str, Any]:
    found = all_of(schemas)
    return found if isinstance(found, dict) else {"not": not found}


def _other_arrays(value: list[Any]) -> Iterator[Schema]:
    if value:
        yield {"maxItems": len(value) - 1}
    yield {"minItems": len(value) + 1}
    for place, item in enumerate(value):
        yield {"prefixItems": [True] * place + [other_values([item])], "minItems": place + 1}


def _other_objects(value: dict[str, Any]) -> Iterator[Schema]:
    for name in value:
        yield {"properties": {name: False}}
    for name, item in value.items():
        yield {"properties": {name: other_values([item])}, "required": [name]}
    yield {"properties": dict.fromkeys(value, True), "required": [*value], "minProperties": len(value) + 1}


_OTHERS: dict[str, Callable[[list[Any]], Iterator[Schema]]] = {
    "null": lambda _: iter(()),
    "boolean": _booleans,
    "number": _numbers,
    "string": _texts,
    "array": _arrays,
    "object": _objects,
}
