"""Limit objects to the properties that their schema names, as llama.cpp and Ollama do.

llama.cpp (``common/json-schema-to-grammar.cpp``, also used by Ollama) allows further properties of a schema
with ``properties`` only if it also has ``additionalProperties``. Its users rely on this: otherwise a weak
model keeps adding properties. An object whose schema has no ``properties`` may have any.

One difference: llama.cpp merges the properties of ``allOf`` before it closes the object. Here every schema of
an object is enforced, and each would forbid the properties of the others, so they stay open if several of
them name properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmd.grammar.subschemas import mapped, resolved

_LISTS = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("if", "then", "else")
_NAMING = ("properties", "patternProperties")
_SAYING = ("additionalProperties", "unevaluatedProperties")


def close_objects(schema: Any) -> Any:
    """Limit the objects of a schema to the properties that they name, unless it allows others itself.

    Raises:
        GrammarError: a subschema is not a schema, or they are nested too deeply.
    """
    # By identity, since several pointers can lead to one schema.
    shared: set[int] = set()

    def find(part: dict[str, Any], path: str) -> dict[str, Any]:
        if _num_naming(part) > 1:
            _mark(resolved(path, schema), schema, shared)
        return part

    def close(part: dict[str, Any], path: str) -> dict[str, Any]:
        if "properties" not in part or any(key in part for key in _SAYING):
            return part
        return part if id(resolved(path, schema)) in shared else {**part, "additionalProperties": False}

    mapped(schema, find)
    return mapped(schema, close)


def _num_naming(schema: dict[str, Any]) -> int:
    """Count the schemas that may name properties of one object: this one and others that apply to it."""
    all_of = schema.get("allOf")
    others = sum(key in schema for key in ("anyOf", "oneOf", "$ref", "dependentSchemas", *_BRANCHES))
    own = any(key in schema for key in _NAMING)
    return own + others + (len(all_of) if isinstance(all_of, list) else 0)


def _mark(schema: Any, root: Any, shared: set[int]) -> None:
    """Add the schema and all others that apply to the same object to ``shared``."""
    pending = [schema]  # no recursion: references can form cycles
    while pending:
        part = pending.pop()
        if isinstance(part, dict) and id(part) not in shared:
            shared.add(id(part))
            pending += _in_place(part, root)


def _in_place(schema: dict[str, Any], root: Any) -> Iterator[Any]:
    for key in _LISTS:
        members = schema.get(key)
        yield from members if isinstance(members, list) else ()
    for key in _BRANCHES:
        yield schema.get(key)
    dependent = schema.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, dict) else ()
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield resolved(reference, root)
