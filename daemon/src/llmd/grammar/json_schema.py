"""JSON schemas as they can be enforced: rewritten where llguidance lacks a keyword, refused by name and path where it cannot be."""

from __future__ import annotations

import json
from typing import Any

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.rewriting.drafts import draft_of, modern
from llmd.grammar.rewriting.references import with_local_references
from llmd.grammar.rewriting.rewriter import rewritten
from llmd.grammar.subschemas import Schema, mapped


def schema_grammar(schema: Any, *, strict: bool = False) -> Grammar:
    """The grammar of a schema. ``strict``: objects have all of their properties and no others, as OpenAI means it."""
    return Grammar("json_schema", json.dumps(closed(schema) if strict else schema))


def closed(schema: Any) -> Any:
    """The schema whose objects have every property that they name, and no others unless it says so itself."""
    return mapped(schema, _close)


def enforceable(schema: Any) -> Schema:
    """A schema that allows what the given one does, in keywords that llguidance has.

    Raises:
        GrammarError: it has a keyword that cannot be enforced; the message has its path.
    """
    try:
        local = with_local_references(schema)
        return rewritten(modern(local, draft_of(schema)) if isinstance(schema, dict) else local)
    except RecursionError as error:
        raise GrammarError(
            "the JSON schema has patterns or alternatives that are nested too deeply",
            hint="send a simpler one",
        ) from error


def _close(schema: dict[str, Any], path: str) -> dict[str, Any]:
    names = schema.get("properties")
    if not isinstance(names, dict):
        is_object = schema.get("type") == "object"
        return {"additionalProperties": False} | schema if is_object else schema
    bound = schema | {"required": [*names]}
    # A member of allOf does not know the properties of the others.
    return bound if "/allOf/" in path else {"additionalProperties": False} | bound
