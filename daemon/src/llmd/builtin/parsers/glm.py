"""GLM-4.5 and later: ``<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>``.

GLM-4.5 and 4.6 begin a new line after the name, each key and each value, later models do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, ChoiceTerm, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import skip_space
from llmd.builtin.parsers.parameters import joined, required_of, schemas_of
from llmd.builtin.parsers.plain_values import plain_terms, read_plain
from llmd.builtin.parsers.script_reader import ScriptReader

BEGIN, END = "<tool_call>", "</tool_call>"
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"
LINE_BREAK = ChoiceTerm((("\n",), ()))
MARKS = (BEGIN, END, KEY, KEY_END, VALUE, VALUE_END)


def load() -> CallFormat:
    return CallFormat(_open, _grammar, MARKS)


def _open(tools: Sequence[Tool]) -> CallReader:
    schemas = {tool.name: schemas_of(tool) for tool in tools}
    return ScriptReader([BEGIN], partial(_call, schemas))


def _call(schemas: Mapping[str, Mapping[str, Any]], cursor: Cursor, _mark: str) -> Script[None]:
    name, has_arguments = yield from _name(cursor)
    if not name or "\n" in name:
        raise MalformedError
    cursor.begin_call(name)
    cursor.arguments("{")
    if has_arguments:
        yield from _arguments(cursor, schemas.get(name, {}))
    cursor.arguments("}")


def _name(cursor: Cursor) -> Script[tuple[str, bool]]:
    """Read the name and the mark behind it, which begins the first key or ends the call."""
    name = ""
    while True:
        if (yield from cursor.accept(KEY)):
            return name.strip(), True
        if (yield from cursor.accept(END)):
            return name.strip(), False
        char = yield from cursor.read()
        if not char:
            raise MalformedError
        name += char


def _arguments(cursor: Cursor, schemas: Mapping[str, Mapping[str, Any]]) -> Script[None]:
    """Read keys and values; the mark before the first key was read."""
    lead = ""
    while True:
        key = (yield from cursor.until(KEY_END)).strip()
        yield from skip_space(cursor)
        yield from cursor.expect(VALUE)
        cursor.arguments(f"{lead}{json.dumps(key, ensure_ascii=False)}: ")
        yield from read_plain(cursor, schemas.get(key, {}), (VALUE_END,))
        lead = ", "
        yield from skip_space(cursor)
        if (yield from cursor.accept(END)):
            return
        yield from cursor.expect(KEY)


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    # A line break may end a call: only a fixed text can separate calls.
    calls = [(tool.name, LINE_BREAK, *joined(list(_members(tool)), ""), END, LINE_BREAK) for tool in tools]
    return CallGrammar(calls, trigger=BEGIN, separator=BEGIN)


def _members(tool: Tool) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    required = required_of(tool.parameters)
    for name, schema in schemas_of(tool).items():
        key = (f"{KEY}{name}{KEY_END}", LINE_BREAK)
        yield name in required, (*key, VALUE, *plain_terms(schema, VALUE_END), LINE_BREAK)
