"""What a rule knows of the document around the schema that it rewrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.combining import without
from llmd.grammar.subschemas import Schema, resolved

MAX_REFERENCES = 16
"""How many references are followed one after the other, at most."""


class Scope(Struct, frozen=True):
    """A place in a document whose references are all local."""

    root: Schema
    path: str
    negate: Callable[[str], dict[str, Any]]
    """The reference to what a reference does not allow."""
    define: Callable[[dict[str, Any], str], dict[str, Any]]
    """The reference to a new definition, for a schema that stands in several alternatives."""
    spend: Callable[[int], None]
    """Count schemas and states that a rule makes; refuses a document of which too many are made."""

    def refusal(self, what: str, hint: str = "") -> GrammarError:
        """The error for what cannot be enforced here."""
        return GrammarError(
            f"the JSON schema has {what} at {self.path}, which cannot be enforced",
            hint=hint or "leave it out of the schema, and check it in the answer",
        )

    def exclusion(self, what: str) -> GrammarError:
        """The error for what has no opposite, where ``not``, ``if``, ``oneOf`` or ``maxContains`` needs it."""
        return GrammarError(
            f"the JSON schema excludes what fits {what} at {self.path}, which cannot be enforced",
            hint="leave it out of not, if, oneOf, or contains with maxContains, and check it in the answer",
        )

    def target(self, reference: str) -> Schema:
        """What a reference leads to, without the definitions of a whole document."""
        found: Schema = resolved(reference, self.root)
        return without(found, "$defs") if isinstance(found, dict) else found

    def followed(self, schema: Schema) -> Schema:
        """What a schema refers to, while it says nothing but that."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict) or schema.keys() != {"$ref"}:
                break
            schema = self.target(schema["$ref"])
        return schema
