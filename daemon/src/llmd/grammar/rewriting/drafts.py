"""Convert schemas of older drafts to draft 2020-12.

A schema that names no draft may use keywords of any. Source: release notes of the drafts,
json-schema.org/specification.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.shapes import checked
from llmd.grammar.subschemas import Schema, mapped


class Draft(IntEnum):
    """Drafts in chronological order."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 8
    DRAFT_2020_12 = 9


_DRAFTS = {
    "draft-04/schema": Draft.DRAFT_4,
    "draft-06/schema": Draft.DRAFT_6,
    "draft-07/schema": Draft.DRAFT_7,
    "draft/2019-09/schema": Draft.DRAFT_2019_09,
    "draft/2020-12/schema": Draft.DRAFT_2020_12,
}
_PLACES = ("https://json-schema.org/", "http://json-schema.org/")
_COUNTS = (
    "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties",
)  # fmt: skip


def draft_of(schema: dict[str, Any]) -> Draft:
    """Return the draft that ``$schema`` names; the newest without ``$schema``.

    Raises:
        GrammarError: it names something else.
    """
    named = schema.get("$schema", f"{_PLACES[0]}draft/2020-12/schema")
    written = named.rstrip("#") if isinstance(named, str) else ""
    known = [written.removeprefix(place) for place in _PLACES if written.startswith(place)]
    draft = _DRAFTS.get(known[0]) if known else None
    if draft is None:
        raise GrammarError(
            f"the JSON schema names the meta-schema {named} in $schema, which is unknown",
            hint="use one of json-schema.org from draft 4 on, or omit $schema",
        )
    return draft


def modern(schema: Schema, draft: Draft) -> Schema:
    """Convert a schema with local references to draft 2020-12."""
    used: set[str] = set()
    found = mapped(schema, lambda part, path: checked(_modern(part, draft, used), path))
    if draft == Draft.DRAFT_2019_09 and {"contains", "unevaluatedItems"} <= used:
        raise GrammarError(
            "the JSON schema has contains and unevaluatedItems, which draft 2019-09 combines differently",
            hint="write the schema in draft 2020-12",
        )
    return found


def _modern(schema: dict[str, Any], draft: Draft, used: set[str]) -> dict[str, Any]:
    used.update(schema)
    changed = {key: _count(value) if key in _COUNTS else value for key, value in schema.items()}
    changed.pop("$schema", None)
    return _bounds(_items(_dependencies(changed), draft))


def _count(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert draft 4's ``exclusiveMinimum: true``, which qualifies ``minimum``."""
    for bound in ("minimum", "maximum"):
        excluded = f"exclusive{bound.capitalize()}"
        if isinstance(schema.get(excluded), bool) and schema.pop(excluded) and bound in schema:
            schema[excluded] = schema.pop(bound)
    return schema


def _items(schema: dict[str, Any], draft: Draft) -> dict[str, Any]:
    if draft < Draft.DRAFT_2020_12:
        schema.pop("prefixItems", None)
    more = schema.pop("additionalItems", None)
    if isinstance(schema.get("items"), list):
        renamed = {"prefixItems" if key == "items" else key: value for key, value in schema.items()}
        return renamed if more is None else renamed | {"items": more}
    return schema


def _dependencies(schema: dict[str, Any]) -> dict[str, Any]:
    given = schema.pop("dependencies", None)
    if not isinstance(given, dict):
        return schema
    names = {name: one for name, one in given.items() if isinstance(one, list)}
    schemas = {name: one for name, one in given.items() if not isinstance(one, list)}
    for key, more in (("dependentRequired", names), ("dependentSchemas", schemas)):
        if more:
            schema[key] = {**schema.get(key, {}), **more}
    return schema
