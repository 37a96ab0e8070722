"""Make all references local: ``#/$defs/NAME``, or ``#`` for the whole document.

The target of a ``$dynamicRef`` depends on the enclosing schemas, which are known for each path that leads to
it: each pair of a schema and the dynamic anchors in force there gets a definition.

Source: JSON Schema Core, draft 2020-12, sections 8.2 and 9.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from msgspec import Struct

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.drafts import Draft, draft_of
from llmd.grammar.subschemas import Schema, check_schema, pointed, with_parts

_RECURSIVE = "$recursiveAnchor"
_IDENTIFIERS = ("$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions")
_NAME = re.compile(r"/(?:\$defs|definitions)/([A-Za-z0-9_.-]+)")

Anchors = tuple[tuple[str, int], ...]
"""Dynamic anchors in force: names and the identity of the schema of each, the outermost first."""


class Place(Struct, frozen=True):
    """A schema in the document, and the base URI of its resource."""

    schema: Any
    base: str


def with_local_references(root: Any) -> Schema:
    """Return the schema with all references into its own ``$defs``; unused definitions are removed.

    Raises:
        GrammarError: the target of a reference does not exist or is in another document.
    """
    check_schema(root, "#", 0)
    return _Resolver(root).document() if isinstance(root, dict) else bool(root)


class _Resolver:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._draft = draft_of(root)
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._dynamic: dict[str, dict[str, Any]] = {}
        self._bases: dict[int, str] = {}
        self._outer: dict[int, str] = {}
        self._places: dict[int, Any] = {}
        self._names: dict[tuple[int, Anchors], str] = {}
        self._pending: list[tuple[str, Place, Anchors, str]] = []
        self._resources[""] = root
        self._register(root, "", "#", 0)

    def document(self) -> Schema:
        base = self._bases[id(self._root)]
        anchors = self._entered((), base)
        if "$ref" in self._root:  # llguidance cannot follow a cycle through a root with further keywords
            whole = {"$ref": self._defined(Place(self._root, base), (), "#", "#")}
        else:
            self._names[id(self._root), anchors] = "#"
            whole = self._local(self._root, anchors, "#", 0)
        definitions: dict[str, Any] = {}
        while self._pending:
            name, place, inner, path = self._pending.pop(0)
            definitions[name] = self._local(place.schema, inner, path, 0)
        return whole | {"$defs": definitions} if definitions else whole

    # Index of possible targets.

    def _register(self, schema: Any, base: str, path: str, depth: int) -> Any:
        check_schema(schema, path, depth)
        if isinstance(schema, dict):
            base = self._named(schema, base)
            self._bases[id(schema)] = base
            with_parts(schema, lambda part, place: self._register(part, base, place, depth + 1), path)
        return schema

    def _named(self, schema: dict[str, Any], base: str) -> str:
        """Register the names of a schema; return the base URI of its subschemas."""
        hides_siblings = "$ref" in schema and self._draft <= Draft.DRAFT_7
        identifier = schema.get("id" if self._draft == Draft.DRAFT_4 else "$id")
        if isinstance(identifier, str) and not hides_siblings:
            name, fragment = urldefrag(identifier)
            if name:
                outer, base = base, _joined(base, name)
                self._resources[base] = schema
                self._outer[id(schema)] = outer
            if fragment and not fragment.startswith("/"):
                self._anchors[base, fragment] = schema
        self._note_anchors(schema, base)
        return base

    def _note_anchors(self, schema: dict[str, Any], base: str) -> None:
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(key), str):
                self._anchors[base, schema[key]] = schema
        if isinstance(schema.get("$dynamicAnchor"), str):
            self._dynamic.setdefault(base, {})[schema["$dynamicAnchor"]] = schema
        if schema.get("$recursiveAnchor") is True and self._resources.get(base) is schema:
            self._dynamic.setdefault(base, {})[_RECURSIVE] = schema

    # References.

    def _entered(self, anchors: Anchors, base: str) -> Anchors:
        """Return the dynamic anchors in force inside a resource: outer anchors take precedence."""
        known = {name for name, _ in anchors}
        own = self._dynamic.get(base, {})
        self._places |= {id(schema): schema for schema in own.values()}
        return anchors + tuple((name, id(schema)) for name, schema in own.items() if name not in known)

    def _local(self, schema: Any, anchors: Anchors, path: str, depth: int) -> Any:
        check_schema(schema, path, depth)
        if isinstance(schema, bool):
            return schema
        base = self._bases[id(schema)]
        anchors = self._entered(anchors, base)
        self._check_base(schema, base, path)
        if "$ref" in schema and self._draft <= Draft.DRAFT_7:
            schema = {"$ref": schema["$ref"]}
        own = {key: value for key, value in schema.items() if key not in _IDENTIFIERS}
        parts = with_parts(own, lambda part, place: self._local(part, anchors, place, depth + 1), path)
        return self._with_references(parts, base, anchors, path)

    def _check_base(self, schema: dict[str, Any], base: str, path: str) -> None:
        """Reject ``$ref`` with ``$id`` if no draft is named and drafts before 2019-09 read it differently."""
        outer = self._outer.get(id(schema), base)
        reference = schema.get("$ref")
        if outer == base or "$schema" in self._root or not isinstance(reference, str):
            return
        name = urldefrag(reference)[0]
        target, other = ((_joined(one, name) if name else one) for one in (base, outer))
        if other in self._resources and self._resources.get(target) is not self._resources[other]:
            raise GrammarError(
                f"the JSON schema has $id next to $ref at {path}, which drafts read differently",
                hint="name the draft in $schema",
            )

    def _with_references(self, schema: dict[str, Any], base: str, anchors: Anchors, path: str) -> Any:
        found: list[dict[str, Any]] = []
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(schema.get(key), str):
                place = self._target(key, schema[key], base, anchors, path)
                found.append({"$ref": self._defined(place, anchors, schema[key], path)})
        if not found:
            return schema
        bare = {key: value for key, value in schema.items() if key not in {"$dynamicRef", "$recursiveRef"}}
        # Replaced in place, since the order of keywords is the order of properties in the answer.
        bare = {key: found[0]["$ref"] if key == "$ref" else value for key, value in bare.items()}
        if "$ref" not in schema:
            bare = {"$ref": found[0]["$ref"]} | bare
        return bare | {"allOf": [*bare.get("allOf", []), *found[1:]]} if found[1:] else bare

    def _target(self, key: str, reference: str, base: str, anchors: Anchors, path: str) -> Place:
        place = self._found(reference, base, path)
        name = _RECURSIVE if key == "$recursiveRef" else urldefrag(reference)[1]
        is_dynamic = key != "$ref" and place.schema is self._dynamic.get(place.base, {}).get(name)
        outermost = dict(anchors).get(name) if is_dynamic else None
        if outermost is None:
            return place
        schema = self._places[outermost]
        return Place(schema, self._bases[id(schema)])

    def _found(self, reference: str, base: str, path: str) -> Place:
        name, fragment = urldefrag(reference)
        target = _joined(base, name) if name else base
        if target not in self._resources:
            raise GrammarError(
                f"the JSON schema refers at {path} to {reference}, which is in another document and is not fetched",
                hint="copy that document into $defs, with its $id",
            )
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            schema = self._anchors.get((target, fragment))
        else:
            schema = self._pointed(self._resources[target], fragment)
        if schema is None:
            raise GrammarError(
                f"the JSON schema refers at {path} to {reference}, which does not exist in it",
                hint="correct the reference",
            )
        return self._placed(schema, target, reference)

    def _pointed(self, resource: Any, pointer: str) -> Any:
        try:
            return pointed(resource, pointer)
        except KeyError:
            return None

    def _placed(self, schema: Any, base: str, reference: str) -> Place:
        """Register a schema on first reference if it is not under a keyword that has schemas."""
        if not isinstance(schema, dict):
            check_schema(schema, reference, 0)
            return Place(schema, base)
        if id(schema) not in self._bases:
            self._register(schema, base, reference, 0)
        return Place(schema, self._bases[id(schema)])

    def _defined(self, place: Place, anchors: Anchors, reference: str, path: str) -> str:
        inner = self._entered(anchors, place.base)
        key = (id(place.schema), inner)
        if key not in self._names:
            name = self._new_name(reference)
            self._names[key] = f"#/$defs/{name}"
            at = reference if reference.startswith("#") else path
            self._pending.append((name, place, inner, at))
        return self._names[key]

    def _new_name(self, reference: str) -> str:
        given = _NAME.fullmatch(urldefrag(reference)[1])
        taken = {name.removeprefix("#/$defs/") for name in self._names.values()}
        if given and given[1] not in taken:
            return given[1]
        return next(name for number in range(len(taken) + 1) if (name := f"definition-{number}") not in taken)


def _joined(base: str, name: str) -> str:
    return name if base.startswith("urn:") else urljoin(base, name)
