"""What a rule knows about the document around the schema that it rewrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.combining import without
from llmd.grammar.subschemas import Schema, resolved

MAX_REFERENCES = 16
"""How many references are followed in a row, at most."""


class Scope(Struct, frozen=True):
    """A path in a document with local references."""

    root: Schema
    path: str
    negate: Callable[[str], dict[str, Any]]
    """Return a reference to the negation of a reference's target."""
    define: Callable[[dict[str, Any], str], dict[str, Any]]
    """Return a reference to a new definition of a schema; for schemas that several alternatives repeat."""
    spend: Callable[[int], None]
    """Count schemas and states that a rule creates; raise `GrammarError` if they become too many."""

    def refusal(self, what: str, hint: str = "") -> GrammarError:
        """Return the error for what cannot be enforced here."""
        return GrammarError(
            f"the JSON schema has {what} at {self.path}, which cannot be enforced",
            hint=hint or "remove it from the schema and check it in the answer",
        )

    def exclusion(self, what: str) -> GrammarError:
        """Return the error for what cannot be negated for ``not``, ``if``, ``oneOf`` or ``maxContains``."""
        return GrammarError(
            f"the JSON schema needs the negation of {what} at {self.path}, which cannot be enforced",
            hint="remove it from not, if, oneOf, or contains with maxContains, and check it in the answer",
        )

    def target(self, reference: str) -> Schema:
        """Return the target of a reference; the whole document without its definitions."""
        found: Schema = resolved(reference, self.root)
        return without(found, "$defs") if isinstance(found, dict) else found

    def followed(self, schema: Schema) -> Schema:
        """Follow references as long as a schema is nothing but a reference."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict) or schema.keys() != {"$ref"}:
                break
            schema = self.target(schema["$ref"])
        return schema
