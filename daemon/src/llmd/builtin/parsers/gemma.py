"""FunctionGemma and Gemma 4: ``call:name{key:value,…}`` between marks, with other marks around strings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from llmd.api.parsing import (
    CallFormat,
    CallGrammar,
    ChoiceTerm,
    ListTerm,
    SchemaTerm,
    Term,
    TextTerm,
    Tool,
)
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import follows
from llmd.builtin.parsers.json_text import MAX_DEPTH, next_item, skip_space
from llmd.builtin.parsers.parameters import (
    definition_of,
    joined,
    pattern_of,
    required_of,
    schemas_of,
    value_of,
)
from llmd.builtin.parsers.script_reader import ScriptReader

_NAME = re.compile(r"[A-Za-z0-9_.:/-]*")
_KEY = re.compile(r"[^:{}\[\],<]*")
_BARE = re.compile(r"[^,{}\[\]<]*")
_TYPES = {"properties": "object", "items": "array"}
"""Types of schemas that do not state one, by keys that they have."""


class Style(Struct, frozen=True):
    """The marks of a generation of Gemma."""

    begin: str
    end: str
    quote: str
    answer_ends: tuple[str, ...] = ()
    """Tokens behind the calls of an answer that do not end its turn."""


FUNCTION_GEMMA = Style("<start_function_call>", "<end_function_call>", "<escape>")
GEMMA4 = Style("<|tool_call>", "<tool_call|>", '<|"|>', ("<|tool_response>",))


def load_function_gemma() -> CallFormat:
    return _format(FUNCTION_GEMMA)


def load_gemma4() -> CallFormat:
    return _format(GEMMA4)


def _format(style: Style) -> CallFormat:
    return CallFormat(
        lambda _tools: ScriptReader([style.begin], _Calls(style).read),
        lambda tools: _grammar(style, tools),
        marks=(style.begin, style.end, style.quote),
        ends=style.answer_ends,
    )


class _Calls(Struct, frozen=True):
    """Reads calls of one style."""

    style: Style

    def read(self, cursor: Cursor, _mark: str) -> Script[None]:
        yield from skip_space(cursor)
        yield from cursor.expect("call:")
        name = yield from cursor.run(_NAME)
        yield from cursor.expect("{")
        if not name:
            raise MalformedError
        cursor.begin_call(name)
        cursor.arguments("{")
        lead = ""
        yield from skip_space(cursor)
        more = not (yield from cursor.accept("}"))
        while more:
            member = yield from self._member(cursor, 1)
            cursor.arguments(lead + member)
            lead = ", "
            more = yield from next_item(cursor, "}")
        cursor.arguments("}")
        yield from follows(cursor, self.style.end)

    def _member(self, cursor: Cursor, depth: int) -> Script[str]:
        if (yield from cursor.accept(self.style.quote)):
            key = yield from cursor.until(self.style.quote)
        else:
            key = (yield from cursor.run(_KEY)).strip()
        yield from cursor.expect(":")
        yield from skip_space(cursor)
        value = yield from self._value(cursor, depth)
        return f"{json.dumps(key, ensure_ascii=False)}: {value}"

    def _value(self, cursor: Cursor, depth: int) -> Script[str]:
        if depth > MAX_DEPTH:
            raise MalformedError
        if (yield from cursor.accept(self.style.quote)):
            return json.dumps((yield from cursor.until(self.style.quote)), ensure_ascii=False)
        if (yield from cursor.accept("{")):
            return (yield from self._items(cursor, "{}", depth))
        if (yield from cursor.accept("[")):
            return (yield from self._items(cursor, "[]", depth))
        bare = (yield from cursor.run(_BARE)).strip()
        if not bare:
            raise MalformedError
        return value_of(bare, {})

    def _items(self, cursor: Cursor, brackets: str, depth: int) -> Script[str]:
        items: list[str] = []
        yield from skip_space(cursor)
        more = not (yield from cursor.accept(brackets[1]))
        while more:
            read = self._member if brackets == "{}" else self._value
            items.append((yield from read(cursor, depth + 1)))
            more = yield from next_item(cursor, brackets[1])
        return brackets[0] + ", ".join(items) + brackets[1]


def _grammar(style: Style, tools: Sequence[Tool]) -> CallGrammar:
    calls = [
        (f"call:{tool.name}{{", *_Values(style, tool.parameters).members(tool.parameters), f"}}{style.end}")
        for tool in tools
    ]
    return CallGrammar(calls, trigger=style.begin, separator=style.begin)


class _Values(Struct, frozen=True):
    """Makes the terms of values, for a tool whose schema is ``root``."""

    style: Style
    root: Mapping[str, Any]
    inside: frozenset[str] = frozenset()
    """References that are being resolved: a schema that refers to itself becomes a text."""

    def members(self, schema: Mapping[str, Any]) -> tuple[Term, ...]:
        """Return the terms between the brackets of an object."""
        required = required_of(schema)
        members = [
            (name in required, (f"{name}:", *self.terms(value)))
            for name, value in schemas_of(Tool("", schema)).items()
        ]
        return joined(members, ",")

    def terms(self, schema: Mapping[str, Any]) -> tuple[Term, ...]:
        """Return the terms of a value. A value of unknown type is a text."""
        if isinstance(reference := schema.get("$ref"), str) and reference not in self.inside:
            inner = structs.replace(self, inside=self.inside | {reference})
            return inner.terms(definition_of(reference, self.root))
        if "enum" in schema or "const" in schema:
            words = schema.get("enum", [schema.get("const")])
            return (ChoiceTerm(tuple((self._written(word),) for word in words)),)
        if options := _options_of(schema):
            return (ChoiceTerm(tuple(map(self.terms, options))),)
        return self._of_type(schema)

    def _of_type(self, schema: Mapping[str, Any]) -> tuple[Term, ...]:
        kind = schema.get("type") or next((kind for key, kind in _TYPES.items() if key in schema), "string")
        if kind == "array":
            items = schema.get("items")
            item = self.terms(items if isinstance(items, Mapping) else {})
            return ("[", ListTerm(item, ","), "]")
        if kind == "object":
            return ("{", *self.members(schema), "}")
        if kind in {"integer", "number", "boolean", "null"}:
            return (SchemaTerm(schema),)
        return (self.style.quote, TextTerm(self.style.quote, pattern_of(schema)))

    def _written(self, value: Any) -> str:
        """Return a value as the model writes it."""
        match value:
            case str():
                return f"{self.style.quote}{value}{self.style.quote}"
            case list():
                return f"[{','.join(map(self._written, value))}]"
            case dict():
                return f"{{{','.join(f'{key}:{self._written(one)}' for key, one in value.items())}}}"
            case _:
                return json.dumps(value)


def _options_of(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of which a value matches one, if there are several."""
    if isinstance(kinds := schema.get("type"), list):
        return [{**schema, "type": kind} for kind in kinds]
    options = schema.get("anyOf", schema.get("oneOf"))
    return [one for one in options if isinstance(one, Mapping)] if isinstance(options, list) else []
