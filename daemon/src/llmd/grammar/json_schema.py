"""Make JSON schemas enforceable: rewrite keywords that llguidance lacks, or reject them by name and path."""

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
    """Return the grammar of a schema. ``strict`` closes objects, as in OpenAI's API: see `closed`."""
    return Grammar("json_schema", json.dumps(closed(schema) if strict else schema))


def closed(schema: Any) -> Any:
    """Require every property that objects name, and forbid others unless the schema allows them itself."""
    return mapped(schema, _close)


def enforceable(schema: Any) -> Schema:
    """Rewrite a schema in keywords that llguidance supports.

    Raises:
        GrammarError: it has a keyword that cannot be enforced; the message contains its path.
    """
    try:
        local = with_local_references(schema)
        return rewritten(modern(local, draft_of(schema)) if isinstance(schema, dict) else local)
    except RecursionError as error:
        raise GrammarError(
            "the JSON schema has patterns or alternatives that are nested too deeply",
            hint="send a simpler schema",
        ) from error


def _close(schema: dict[str, Any], path: str) -> dict[str, Any]:
    names = schema.get("properties")
    if not isinstance(names, dict):
        is_object = schema.get("type") == "object"
        return {"additionalProperties": False} | schema if is_object else schema
    bound = schema | {"required": [*names]}
    # A member of allOf does not know the properties of the others.
    return bound if "/allOf/" in path else {"additionalProperties": False} | bound
