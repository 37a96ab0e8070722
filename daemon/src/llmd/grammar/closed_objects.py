"""Objects that have no properties but those that their schema names, as llama.cpp and Ollama read schemas.

llama.cpp (``common/json-schema-to-grammar.cpp``), which Ollama uses too, writes other properties only where a schema
with ``properties`` has ``additionalProperties``; their users count on it, because a weak model else goes on inside of the
object. An object without ``properties`` may have any.

Differs: llama.cpp merges the properties of ``allOf`` before it closes the object. Here all schemas of one object are
enforced, and each would forbid the properties of the others: where several name some, all of them stay open.
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
    """The schema, whose objects have only the properties that they name unless it says so itself.

    Raises:
        GrammarError: something that should be a schema is none, or they are nested too deeply.
    """
    # By identity: one schema can be referred to by many pointers.
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
    """How many schemas for one object may name properties: the schema's own, and those that apply to the same object."""
    all_of = schema.get("allOf")
    others = sum(key in schema for key in ("anyOf", "oneOf", "$ref", "dependentSchemas", *_BRANCHES))
    own = any(key in schema for key in _NAMING)
    return own + others + (len(all_of) if isinstance(all_of, list) else 0)


def _mark(schema: Any, root: Any, shared: set[int]) -> None:
    """Note the schema and all that apply to the same object."""
    left = [schema]  # no recursion: references can follow each other without end
    while left:
        part = left.pop()
        if isinstance(part, dict) and id(part) not in shared:
            shared.add(id(part))
            left += _in_place(part, root)


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
