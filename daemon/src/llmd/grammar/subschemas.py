"""Where a JSON schema has schemas inside, and where it has data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmd.api.errors import GrammarError

Schema = dict[str, Any] | bool
Visit = Callable[[dict[str, Any], str], dict[str, Any]]
"""Gets a schema, whose own parts were visited before, and its JSON pointer; returns what takes its place."""
Change = Callable[[Any, str], Any]
"""Gets a schema inside of another and its JSON pointer; returns what takes its place."""

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
    check_schema(schema, path, depth)
    if isinstance(schema, bool):
        return schema
    return visit(with_parts(schema, lambda part, place: mapped(part, visit, place, depth + 1), path), path)


def check_schema(schema: Any, path: str, depth: int) -> None:
    """Refuse what is no schema, and what is nested more than `MAX_DEPTH` levels deep."""
    if not isinstance(schema, (bool, dict)):
        raise GrammarError(
            f"the JSON schema has at {path} what is no schema", hint="send an object or a boolean"
        )
    if depth > MAX_DEPTH:
        raise GrammarError(
            f"the JSON schema is nested more than {MAX_DEPTH} levels deep", hint="put parts into $defs"
        )


def with_parts(schema: dict[str, Any], change: Change, path: str) -> dict[str, Any]:
    """The schema with each schema directly inside of it changed."""
    return {key: _part(key, value, change, f"{path}/{escaped(key)}") for key, value in schema.items()}


def _part(key: str, value: Any, change: Change, path: str) -> Any:
    if key in _LISTS and isinstance(value, list):
        return [change(one, f"{path}/{place}") for place, one in enumerate(value)]
    if key in _NAMED and isinstance(value, dict):
        return {name: change(one, f"{path}/{escaped(name)}") for name, one in value.items()}
    if key == "dependencies" and isinstance(value, dict):  # of older drafts: a schema, or a list of names
        return {
            name: one if isinstance(one, list) else change(one, f"{path}/{escaped(name)}")
            for name, one in value.items()
        }
    return change(value, path) if key in _ONE else value


def escaped(name: str) -> str:
    """As RFC 6901 writes it in a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def pointed(root: Any, pointer: str) -> Any:
    """What a JSON pointer leads to.

    Raises:
        KeyError: nowhere.
    """
    found = root
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found[name]
        else:
            raise KeyError(name)
    return found


def resolved(reference: str, root: Any) -> Any:
    """What a reference within the document points to; None where it is another kind of reference, or points nowhere."""
    if not reference.startswith("#"):
        return None
    try:
        return pointed(root, reference[1:])
    except KeyError:
        return None
