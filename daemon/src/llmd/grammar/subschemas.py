"""Where a JSON schema has schemas inside, and where it has data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmd.api.errors import GrammarError

Schema = dict[str, Any] | bool
Visit = Callable[[dict[str, Any], str], dict[str, Any]]
"""Gets a schema, whose own parts were visited before, and its JSON pointer; returns what takes its place."""

MAX_DEPTH = 64
_ONE = frozenset({
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def mapped(schema: Any, visit: Visit, path: str = "#", depth: int = 0) -> Schema:
    """The schema with ``visit`` applied to each object in it that is a schema itself.

    Raises:
        GrammarError: something that should be a schema is none, or they are nested too deeply.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise GrammarError(
            f"the JSON schema has at {path} what is no schema", hint="send an object or a boolean"
        )
    if depth > MAX_DEPTH:
        raise GrammarError(
            f"the JSON schema is nested more than {MAX_DEPTH} levels deep", hint="put parts into $defs"
        )
    parts = {key: _part(key, value, visit, path, depth + 1) for key, value in schema.items()}
    return visit(parts, path)


def _part(key: str, value: Any, visit: Visit, path: str, depth: int) -> Any:
    if key in _LISTS and isinstance(value, list):
        return [mapped(one, visit, f"{path}/{key}/{place}", depth) for place, one in enumerate(value)]
    if key in _NAMED and isinstance(value, dict):
        return {
            name: mapped(one, visit, f"{path}/{key}/{_escaped(name)}", depth) for name, one in value.items()
        }
    return mapped(value, visit, f"{path}/{key}", depth) if key in _ONE else value


def _escaped(name: str) -> str:
    """As RFC 6901 writes it in a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def resolved(reference: str, root: Any) -> Any:
    """What a reference within the document points to; None where it is another kind of reference, or points nowhere."""
    if not reference.startswith("#"):
        return None
    found = root
    for escaped in reference[1:].split("/")[1:]:
        name = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return None
    return found
