"""Fields that constrain an answer: ``response_format``, vLLM's ``structured_outputs`` and older ``guided_*``,
and llama.cpp's ``grammar`` and ``json_schema``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import msgspec
from msgspec import Struct

from llmd.api.messages import Grammar
from llmd.grammar.closed_objects import close_objects
from llmd.grammar.json_schema import schema_grammar
from llmd.requests.fields import BadRequestError, RequestFields


class GrammarOptions(TypedDict, total=False):
    """Fields that constrain an answer to a grammar, also options of `llmd.Engine`."""

    grammar: Grammar | str | None
    """llama.cpp's GBNF; in Python also a `Grammar`."""
    json_schema: Mapping[str, Any] | str | None
    """A JSON schema in llama.cpp's form."""
    response_format: Mapping[str, Any] | None
    """OpenAI's form."""
    structured_outputs: Mapping[str, Any] | None
    """vLLM's form."""


class GrammarChoice(Struct, frozen=True):
    """The grammar of a request."""

    grammar: Grammar | None = None
    param: str = "response_format"
    """The field that contains the grammar."""
    ignored: tuple[str, ...] = ()
    """Names of nested fields that were not read."""


Read = Callable[[RequestFields, str], Grammar | None]


def read_grammar(fields: RequestFields) -> GrammarChoice:
    """Read the grammar of a request.

    Raises:
        BadRequestError: a field has an invalid value, or two fields contain grammars.
    """
    nested = fields.nested("structured_outputs")
    nested.refuse("structural_tag", (), "llmd does not constrain tags within free text")
    found = [
        GrammarChoice(grammar, name)
        for name, read in _FIELDS.items()
        if (grammar := read(fields, name)) is not None
    ]
    found += [
        GrammarChoice(grammar, f"structured_outputs.{name}")
        for name, read in _STRUCTURED_OUTPUTS.items()
        if (grammar := read(nested, name)) is not None
    ]
    if len(found) > 1:
        raise BadRequestError(
            f"{found[0].param} and {found[1].param} both constrain the answer",
            code="invalid_value",
            param=found[1].param,
            hint="send only one of them",
        )
    choice = found[0] if found else GrammarChoice()
    return msgspec.structs.replace(choice, ignored=nested.ignored)


def read_format(fields: RequestFields, name: str = "response_format") -> Grammar | None:
    """Read a format: ``text``, ``json_object`` (with llama.cpp's ``schema``) or ``json_schema``.

    Raises:
        BadRequestError: the type is unknown, or the schema is missing.
    """
    value = fields.value(name)
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return (
            Grammar("json_object")
            if value.get("schema") is None
            else _closed_schema(fields, name, value["schema"])
        )
    if kind != "json_schema":
        raise fields.invalid(name, "an object with a type of text, json_object or json_schema")
    inner = value.get("json_schema")
    if not isinstance(inner, dict) or inner.get("schema") is None:
        raise fields.invalid(name, "with a schema in its json_schema")
    return _of_schema(fields, name, inner["schema"], strict=inner.get("strict") is True)


def _schema(fields: RequestFields, name: str) -> Grammar | None:
    value = fields.value(name)
    return None if value is None else _of_schema(fields, name, value)


def _llamacpp_schema(fields: RequestFields, name: str) -> Grammar | None:
    value = fields.value(name)
    return None if value is None else _closed_schema(fields, name, value)


def _closed_schema(fields: RequestFields, name: str, schema: Any) -> Grammar:
    """Return the grammar of a schema as llama.cpp understands it: objects have no undeclared properties."""
    return schema_grammar(close_objects(_read_schema(fields, name, schema)))


def _of_schema(fields: RequestFields, name: str, schema: Any, *, strict: bool = False) -> Grammar:
    return schema_grammar(_read_schema(fields, name, schema), strict=strict)


def _read_schema(fields: RequestFields, name: str, schema: Any) -> dict[str, Any] | bool:
    """Read a schema that is an object or JSON text."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise fields.invalid(name, "a JSON schema") from error
    if not isinstance(schema, dict | bool):
        raise fields.invalid(name, "a JSON schema")
    return schema


def _json_object(fields: RequestFields, name: str) -> Grammar | None:
    return Grammar("json_object") if fields.boolean(name) else None


def _regex(fields: RequestFields, name: str) -> Grammar | None:
    pattern = fields.text(name)
    return Grammar("regex", pattern) if pattern else None


def _choice(fields: RequestFields, name: str) -> Grammar | None:
    value = fields.value(name)
    if value in (None, []):
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise fields.invalid(name, "a list of texts")
    return Grammar("choice", json.dumps(value))


def _grammar(fields: RequestFields, name: str) -> Grammar | None:
    """Read a grammar in GBNF or Lark; only GBNF defines rules with ``::=``."""
    text = fields.text(name)
    if not text:
        return None
    return Grammar("gbnf" if "::=" in text else "lark", text)


_FIELDS: dict[str, Read] = {
    "response_format": read_format,
    "json_schema": _llamacpp_schema,
    "grammar": _grammar,
    "guided_json": _schema,
    "guided_regex": _regex,
    "guided_choice": _choice,
    "guided_grammar": _grammar,
}
_STRUCTURED_OUTPUTS: dict[str, Read] = {
    "json": _schema,
    "json_object": _json_object,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
}
