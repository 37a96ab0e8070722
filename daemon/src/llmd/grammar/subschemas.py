"""Visit the subschemas of a JSON schema, as opposed to its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmd.api.errors import GrammarError

Schema = dict[str, Any] | bool
Visit = Callable[[dict[str, Any], str], dict[str, Any]]
"""Takes a schema, whose subschemas were already visited, and its JSON pointer; returns the replacement."""
Change = Callable[[Any, str], Any]
"""Takes a subschema and its JSON pointer; returns the replacement."""

MAX_DEPTH = 64
_ONE = frozenset({
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def mapped(schema: Any, visit: Visit, path: str = "#", depth: int = 0) -> Schema:
    """Return the schema with ``visit`` applied to it and to each subschema that is an object.

    Raises:
        GrammarError: a subschema is not a schema, or they are nested too deeply.
    """
    check_schema(schema, path, depth)
    if isinstance(schema, bool):
        return schema
    return visit(with_parts(schema, lambda part, place: mapped(part, visit, place, depth + 1), path), path)


def check_schema(schema: Any, path: str, depth: int) -> None:
    """Raise `GrammarError` for what is not a schema, or is nested more than `MAX_DEPTH` levels deep."""
    if not isinstance(schema, (bool, dict)):
        raise GrammarError(
            f"the JSON schema has a value at {path} that is not a schema", hint="send an object or a boolean"
        )
    if depth > MAX_DEPTH:
        raise GrammarError(
            f"the JSON schema is nested more than {MAX_DEPTH} levels deep", hint="put parts into $defs"
        )


def with_parts(schema: dict[str, Any], change: Change, path: str) -> dict[str, Any]:
    """Return the schema with each direct subschema changed."""
    return {key: _part(key, value, change, f"{path}/{escaped(key)}") for key, value in schema.items()}


def _part(key: str, value: Any, change: Change, path: str) -> Any:
    if key in _LISTS and isinstance(value, list):
        return [change(one, f"{path}/{place}") for place, one in enumerate(value)]
    if key in _NAMED and isinstance(value, dict):
        return {name: change(one, f"{path}/{escaped(name)}") for name, one in value.items()}
    if key == "dependencies" and isinstance(value, dict):  # in older drafts: a schema, or a list of names
        return {
            name: one if isinstance(one, list) else change(one, f"{path}/{escaped(name)}")
            for name, one in value.items()
        }
    return change(value, path) if key in _ONE else value


def escaped(name: str) -> str:
    """Escape a name for a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def pointed(root: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer.

    Raises:
        KeyError: there is none.
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
    """Return the target of a reference within the document; None if it has none, or for other references."""
    if not reference.startswith("#"):
        return None
    try:
        return pointed(root, reference[1:])
    except KeyError:
        return None
