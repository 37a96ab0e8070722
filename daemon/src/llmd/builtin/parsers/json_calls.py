"""Calls as JSON objects, ``{"name": …, "arguments": {…}}``, alone or in a list: the most common form."""

from __future__ import annotations

import json
from collections.abc import Collection

from msgspec import Struct

from llmd.api.parsing import SchemaTerm, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import (
    next_item,
    read_key,
    read_object,
    read_string,
    read_value,
    skip_space,
)
from llmd.builtin.parsers.script_reader import CallScript

ARGUMENT_KEYS = ("arguments", "parameters")


def call_terms(tool: Tool, *, key: str = "arguments", before: str = "", after: str = "") -> tuple[Term, ...]:
    """Return the grammar terms of a call; ``key`` is the name of its arguments field."""
    head = f'{before}{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "{key}": '
    return (head, SchemaTerm(tool.parameters), f"}}{after}")


def json_calls(*, closing: str = "", separator: str = "", names: Collection[str] | None = None) -> CallScript:
    """Return a script that reads one call or a list of calls, and then ``closing`` if present.

    ``separator`` may separate calls outside a list. A call of a name that is not in ``names`` is text.
    """

    def read(cursor: Cursor, _mark: str) -> Script[None]:
        yield from skip_space(cursor)
        if (yield from cursor.accept("[")):
            yield from skip_space(cursor)
            more = True
            while more:
                yield from read_call(cursor, names)
                more = yield from next_item(cursor, "]")
        else:
            yield from read_call(cursor, names)
            while separator and (yield from follows(cursor, separator)):
                yield from skip_space(cursor)
                yield from read_call(cursor, names)
        if closing:
            yield from follows(cursor, closing)

    return read


def follows(cursor: Cursor, literal: str) -> Script[bool]:
    """After a complete call, read whitespace and ``literal`` if they follow."""
    cursor.settle()
    before = cursor.place
    yield from skip_space(cursor)
    if (yield from cursor.accept(literal)):
        cursor.settle()
        return True
    cursor.place = before
    return False


class _Found(Struct):
    """What is known about a call while it is read."""

    name: str | None = None
    arguments: str | None = None
    is_emitted: bool = False
    """Its start and arguments were emitted already."""


def read_call(cursor: Cursor, names: Collection[str] | None = None) -> Script[None]:
    """Read one call. Once its name is known, its arguments are emitted as they arrive."""
    found = _Found()
    yield from _read_members(cursor, found, names)
    if found.is_emitted:
        return
    if found.name is None:
        raise MalformedError
    arguments = whole_arguments(found.arguments)
    cursor.begin_call(found.name)
    cursor.arguments(arguments)


def _read_members(cursor: Cursor, found: _Found, names: Collection[str] | None) -> Script[None]:
    yield from cursor.expect("{")
    yield from skip_space(cursor)
    more = True
    while more:
        key = yield from read_key(cursor)
        char = yield from cursor.peek()
        if key == "name" or (key == "function" and char == '"'):
            found.name = yield from read_string(cursor)
            if not found.name or (names is not None and found.name not in names):
                raise MalformedError
        elif key == "function":
            yield from _read_members(cursor, found, names)
        elif key in ARGUMENT_KEYS and char == "{" and found.name is not None and not found.is_emitted:
            cursor.begin_call(found.name)
            found.is_emitted = True
            yield from cursor.arguments_from(read_object(cursor))
        else:
            start = cursor.place
            yield from read_value(cursor)
            if key in ARGUMENT_KEYS and not found.is_emitted:
                found.arguments = cursor.text(start, cursor.place)
        more = yield from next_item(cursor, "}")


def whole_arguments(text: str | None) -> str:
    """Return arguments as a JSON object: ``{}`` if missing; some models write a string that contains JSON."""
    try:
        value = {} if text is None else json.loads(text)
        if isinstance(value, str):
            text, value = value, json.loads(value or "{}")
    except (ValueError, RecursionError) as error:
        raise MalformedError from error
    if value is None or value == {}:
        return "{}"
    if not isinstance(value, dict):
        raise MalformedError
    assert text is not None
    return text.strip()
