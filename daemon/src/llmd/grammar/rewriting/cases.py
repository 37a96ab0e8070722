"""Rewrite several ``if`` that test the same property to one alternative for each of its values.

Rewritten one by one, each ``if`` would double the alternatives of the others.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.grammar.rewriting.combining import TYPES, all_of, any_of, types_of, with_schema, without
from llmd.grammar.rewriting.neutral import required_names
from llmd.grammar.rewriting.values import spelled
from llmd.grammar.subschemas import Schema

_NOTES = frozenset({"$comment", "description", "title"})


class Case(Struct, frozen=True):
    """An ``if`` that tests a property for some values."""

    name: str
    values: list[Any]
    fits_without: bool
    """An object without the property fits the condition."""
    fits_others: bool
    """Values that are not objects fit the condition."""
    then: Schema
    otherwise: Schema


def without_cases(schema: dict[str, Any]) -> dict[str, Any]:
    """Rewrite the cases in ``allOf`` to alternatives, if there are several for one property."""
    found = [(member, _case(member)) for member in schema["allOf"]]
    by_name: dict[str, list[Case]] = {}
    for _, case in found:
        if case is not None:
            by_name.setdefault(case.name, []).append(case)
    chosen = {name: cases for name, cases in by_name.items() if len(cases) > 1}
    if not chosen:
        return schema
    kept = [member for member, case in found if case is None or case.name not in chosen]
    rest = schema | {"allOf": kept} if kept else without(schema, "allOf")
    for cases in chosen.values():
        rest = with_schema(rest, any_of(_alternatives(cases, schema)))
    return rest


def _case(member: Schema) -> Case | None:
    """Return a schema as a case; None if it is anything else."""
    if not isinstance(member, dict) or not member.keys() - _NOTES <= {"if", "then", "else"}:
        return None
    condition = member.get("if")
    if not isinstance(condition, dict) or not condition.keys() - _NOTES <= {"properties", "required", "type"}:
        return None
    properties = condition.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    ((name, wanted),) = properties.items()
    values = _values(wanted)
    if values is None or not set(required_names(condition)) <= {name}:
        return None
    if condition.get("type", "object") != "object":
        return None
    return Case(
        name,
        values,
        fits_without=name not in required_names(condition),
        fits_others="type" not in condition,
        then=member.get("then", True),
        otherwise=member.get("else", True),
    )


def _values(wanted: Schema) -> list[Any] | None:
    if not isinstance(wanted, dict):
        return None
    said = wanted.keys() - _NOTES
    if said == {"const"}:
        return [wanted["const"]]
    return wanted["enum"] if said == {"enum"} and isinstance(wanted["enum"], list) else None


def _alternatives(cases: list[Case], schema: dict[str, Any]) -> list[Schema]:
    name = cases[0].name
    values = {spelled(value): value for case in cases for value in case.values}
    groups: dict[tuple[bool, ...], list[Any]] = {}
    for key, value in values.items():
        fitting = tuple(key in map(spelled, case.values) for case in cases)
        groups.setdefault(fitting, []).append(value)
    found = [
        all_of([_with(name, {"enum": group}), *_following(cases, fitting)])
        for fitting, group in groups.items()
    ]
    no_case = [False] * len(cases)
    found.append(all_of([_with(name, {"not": {"enum": [*values.values()]}}), *_following(cases, no_case)]))
    if name not in required_names(schema):
        absent: Schema = {"type": "object", "properties": {name: False}}
        found.append(all_of([absent, *_following(cases, [case.fits_without for case in cases])]))
    if others := [one for one in types_of(schema) if one != "object" and one in {*TYPES, "integer"}]:
        found.append(all_of([{"type": others}, *_following(cases, [case.fits_others for case in cases])]))
    return found


def _with(name: str, value: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": {name: value}, "required": [name]}


def _following(cases: list[Case], fitting: list[bool] | tuple[bool, ...]) -> list[Schema]:
    return [case.then if fits else case.otherwise for case, fits in zip(cases, fitting, strict=True)]
