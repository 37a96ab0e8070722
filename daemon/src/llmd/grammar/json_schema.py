"""JSON schemas as they can be enforced: what binds nothing is dropped, what cannot be enforced is refused by name and path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.one_of import are_disjoint
from llmd.grammar.subschemas import Schema, mapped

# Keywords that a grammar cannot express, and the values that bind nothing.
_UNENFORCEABLE: dict[str, tuple[Any, ...]] = {
    "not": (False,),
    "if": (),
    "contains": (True, {}),
    "uniqueItems": (False,),
    "propertyNames": (True, {}, {"type": "string"}),  # names are strings
    "dependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "unevaluatedItems": (True, {}),
    "unevaluatedProperties": (True, {}),
    "$dynamicRef": (),
    "$recursiveRef": (),
}
LEAST_ABOVE_ZERO = 1e-6
"""The least number that is written where a schema wants one above zero."""

# Each means something only beside the other.
_DEPENDING = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
# Of those that the specification defines, these are not enforced. It calls all others annotations.
_FORMATS = (
    "idn-email", "idn-hostname", "iri", "iri-reference", "json-pointer", "regex", "relative-json-pointer",
    "uri-reference", "uri-template",
)  # fmt: skip
_ENFORCED_FORMATS = (
    "date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid",
)  # fmt: skip


def schema_grammar(schema: Any, *, strict: bool = False) -> Grammar:
    """The grammar of a schema. ``strict``: objects have all of their properties and no others, as OpenAI means it."""
    return Grammar("json_schema", json.dumps(closed(schema) if strict else schema))


def closed(schema: Any) -> Any:
    """The schema whose objects have every property that they name, and no others unless it says so itself."""
    return mapped(schema, _close)


def enforceable(schema: Any) -> Schema:
    """The same schema without what binds nothing.

    Raises:
        GrammarError: it has a keyword that cannot be enforced; the message has its path.
    """
    return mapped(schema, lambda part, path: _enforceable(part, path, schema))


def _close(schema: dict[str, Any], path: str) -> dict[str, Any]:
    names = schema.get("properties")
    if not isinstance(names, dict):
        is_object = schema.get("type") == "object"
        return {"additionalProperties": False} | schema if is_object else schema
    bound = schema | {"required": [*names]}
    # A member of allOf does not know the properties of the others.
    return bound if "/allOf/" in path else {"additionalProperties": False} | bound


def _enforceable(schema: dict[str, Any], path: str, root: Any) -> dict[str, Any]:
    bare = {key: value for key, value in schema.items() if not _binds_nothing(key, value, schema)}
    for key in bare:
        if key in _UNENFORCEABLE:
            raise _refusal(key, path)
    if bare.get("format") in _FORMATS:
        raise _refusal(f"format {bare['format']}", path)
    _check_least(bare, path)
    _check_characters(bare, path)
    return _any_of(_without_zero(bare), root)


def _binds_nothing(key: str, value: Any, schema: dict[str, Any]) -> bool:
    if key == "x-guidance":  # llguidance's own switch, which could turn the schema off
        return True
    if key == "if":
        return all(schema.get(branch, True) in (True, {}) for branch in ("then", "else"))
    if key in _DEPENDING:
        return _DEPENDING[key] not in schema or value in (True, {})
    if key == "format":
        return value not in _FORMATS and value not in _ENFORCED_FORMATS
    if key == "minProperties":
        return isinstance(value, int) and value <= len(set(_names(schema.get("required"))))
    neutral = _UNENFORCEABLE.get(key, ())
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in neutral)


def _names(required: Any) -> list[str]:
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _check_least(schema: dict[str, Any], path: str) -> None:
    """One more property than the required ones can be asked for; of two, the second could be the first again."""
    least = schema.get("minProperties")
    if isinstance(least, int) and least > 1:
        raise _refusal("minProperties above 1 and above the number of required ones", path)


def _check_characters(schema: dict[str, Any], path: str) -> None:
    """Control characters have no escape that is allowed (`llmd.grammar.lark`), but for those with a letter."""
    names = schema.get("properties")
    texts = {**schema, "properties": [*names] if isinstance(names, dict) else None}
    for key in ("const", "enum", "properties", "required"):
        if _has_control_character(texts.get(key)):
            raise _refusal(f"a control character in {key}", path)


def _has_control_character(value: Any) -> bool:
    if isinstance(value, str):
        return any(sign < " " and sign not in "\b\f\n\r\t" for sign in value)
    if isinstance(value, dict):
        return any(map(_has_control_character, (*value, *value.values())))
    return isinstance(value, list) and any(map(_has_control_character, value))


def _without_zero(schema: dict[str, Any]) -> dict[str, Any]:
    """Zero as an excluded bound: llguidance lets it through where the other bound is below 1 too."""
    bounds = dict(schema)
    for bound, least in (("minimum", LEAST_ABOVE_ZERO), ("maximum", -LEAST_ABOVE_ZERO)):
        excluded = f"exclusive{bound.capitalize()}"
        if isinstance(bounds.get(excluded), bool):  # as draft 4 writes it
            is_excluded = bounds.pop(excluded)
            if is_excluded and bound in bounds:
                bounds[excluded] = bounds.pop(bound)
        if bounds.get(excluded) == 0 and bounds.get("type") != "integer":
            del bounds[excluded]
            given = bounds.get(bound, least)
            bounds[bound] = max(given, least) if least > 0 else min(given, least)
    return bounds


def _any_of(schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """``oneOf`` of alternatives that exclude each other is ``anyOf``; what is left is refused when it is compiled."""
    choices = schema.get("oneOf")
    if not isinstance(choices, list) or not are_disjoint(choices, root):
        return schema
    rest = {key: value for key, value in schema.items() if key != "oneOf"}
    if "anyOf" not in rest:
        return rest | {"anyOf": choices}
    return rest | {"allOf": [*rest.get("allOf", []), {"anyOf": choices}]}


def first_path(schema: Any, keyword: str) -> str:
    """Where a schema first has a keyword, as a JSON pointer; empty where it has none."""
    return next(_paths(schema, keyword), "")


def _paths(schema: Any, keyword: str) -> Iterator[str]:
    found: list[str] = []

    def look(part: dict[str, Any], path: str) -> dict[str, Any]:
        found.extend([path] if keyword in part else [])
        return part

    mapped(schema, look)
    yield from found


def _refusal(what: str, path: str) -> GrammarError:
    return GrammarError(
        f"the JSON schema has {what} at {path}, which cannot be enforced",
        hint="leave it out of the schema, and check it in the answer",
    )
