"""Apply the rules to a document until no keyword is left that llguidance lacks."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.cases import without_cases
from llmd.grammar.rewriting.conditions import without_dependent, without_if
from llmd.grammar.rewriting.contains import without_contains
from llmd.grammar.rewriting.formats import without_format
from llmd.grammar.rewriting.negation import without_not
from llmd.grammar.rewriting.neutral import without_neutral
from llmd.grammar.rewriting.one_of import without_one_of
from llmd.grammar.rewriting.property_counts import without_counts
from llmd.grammar.rewriting.property_names import without_overlaps, without_property_names
from llmd.grammar.rewriting.scope import Scope
from llmd.grammar.rewriting.unevaluated import has_unevaluated, without_unevaluated
from llmd.grammar.rewriting.unique_items import without_unique_items
from llmd.grammar.rewriting.unsatisfiable import with_definitions, without_false
from llmd.grammar.rewriting.unwritable import (
    check_characters,
    with_names_together,
    without_whole_bounds,
)
from llmd.grammar.subschemas import Schema, check_schema, with_parts
from llmd.grammar.texts.patterns import with_plain_patterns

MAX_WORK = 4_000
"""How many schemas rules may create for a document; states of automata count as fractions."""

Rule = Callable[[dict[str, Any], Scope], dict[str, Any]]
_RULES: tuple[tuple[frozenset[str], Rule], ...] = (
    (frozenset({"uniqueItems"}), without_unique_items),
    (frozenset({"contains"}), without_contains),
    (frozenset({"propertyNames"}), without_property_names),
    (frozenset({"dependentRequired", "dependentSchemas"}), without_dependent),
    (frozenset({"allOf"}), lambda schema, _: without_cases(schema)),
    (frozenset({"if"}), lambda schema, _: without_if(schema)),
    (frozenset({"oneOf"}), without_one_of),
    (frozenset({"not"}), without_not),
    (frozenset({"minProperties", "maxProperties"}), without_counts),
    (frozenset({"format"}), without_format),
)


def rewritten(document: Schema) -> Schema:
    """Rewrite a document with local references in keywords that llguidance supports.

    Raises:
        GrammarError: something in it cannot be enforced; the message names it and its path.
    """
    return _Rewriter(document).document()


class _Rewriter:
    def __init__(self, root: Schema) -> None:
        given = root.get("$defs", {}) if isinstance(root, dict) else {}
        self._definitions: dict[str, Schema] = dict(given)
        """Includes definitions that rules add."""
        self._root = root if isinstance(root, bool) else root | {"$defs": self._definitions}
        self._paths: dict[str, str] = {}
        """For each definition that a rule added: where the rule was applied."""
        self._negated: dict[str, str] = {}
        self._defined: dict[str, str] = {}
        self._work = 0

    def document(self) -> Schema:
        root = self._root
        if isinstance(root, bool):
            return root
        whole = self._schema({key: value for key, value in root.items() if key != "$defs"}, "#", 0)
        definitions: dict[str, Schema] = {}
        while waiting := [name for name in self._definitions if name not in definitions]:
            for name in waiting:
                path, is_made = self._paths.get(name, f"#/$defs/{name}"), name in self._paths
                definitions[name] = self._schema(self._definitions[name], path, 0, is_made=is_made)
        return with_definitions(whole, definitions)

    def _schema(self, schema: Schema, path: str, depth: int, *, is_made: bool = False) -> Schema:
        """Rewrite a schema. ``is_made``: a rule created it; its path is where the rule was applied."""
        check_schema(schema, path, depth)
        if is_made:
            self._spend(1, path)
        if isinstance(schema, bool):
            return schema
        if has_unevaluated(schema) and depth > 0:
            return self._define(schema, "unevaluated", path)
        found = self._ruled(schema, self._scope(path))
        is_made = is_made or found is not schema
        parts = with_parts(
            found,
            lambda part, place: self._schema(part, path if is_made else place, depth + 1, is_made=is_made),
            path,
        )
        check_characters(parts, path)
        return without_false(with_names_together(without_whole_bounds(parts)))

    def _ruled(self, schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
        """Apply all rules; return the schema itself if nothing changes."""
        if has_unevaluated(schema):
            schema = without_unevaluated(schema, scope)
        bare = without_neutral(schema)
        schema = schema if len(bare) == len(schema) else bare
        for keywords, rule in _RULES:
            if keywords & schema.keys():
                schema = rule(schema, scope)
        schema = with_plain_patterns(schema)
        if len(schema.get("patternProperties", {})) > 1:
            schema = without_overlaps(schema, scope)
        return schema

    def _scope(self, path: str) -> Scope:
        return Scope(
            self._root,
            path,
            negate=functools.partial(self._negate, path=path),
            define=functools.partial(self._define, path=path),
            spend=functools.partial(self._spend, path=path),
        )

    def _spend(self, amount: int, path: str) -> None:
        self._work += amount
        if self._work > MAX_WORK:
            raise GrammarError(
                f"the JSON schema becomes too large at {path}, where alternatives are combined",
                hint="use fewer not, if, oneOf, contains and dependent properties, or check them in the answer",
            )

    def _define(self, schema: dict[str, Any], name: str, path: str) -> dict[str, Any]:
        """Return a reference to a definition of the schema, since an inlined schema could contain itself."""
        if schema.keys() == {"$ref"}:
            return schema
        key = json.dumps(schema)
        if key not in self._defined:
            self._defined[key] = self._added(schema, name, path)
        return {"$ref": f"#/$defs/{self._defined[key]}"}

    def _added(self, schema: dict[str, Any], name: str, path: str) -> str:
        """Add a definition; return its name."""
        while name in self._definitions:
            name += "-"
        self._definitions[name] = schema
        self._paths[name] = path
        return name

    def _negate(self, reference: str, path: str) -> dict[str, Any]:
        if reference not in self._negated:
            name = f"not-{reference.rpartition('/')[2].strip('#') or 'document'}"
            opposite = {"not": self._scope(reference).target(reference)}
            self._negated[reference] = self._added(opposite, name, path)
        return {"$ref": f"#/$defs/{self._negated[reference]}"}
