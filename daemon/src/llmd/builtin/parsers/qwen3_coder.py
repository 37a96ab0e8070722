"""Qwen3-Coder: ``<tool_call><function=name><parameter=key>value</parameter></function></tool_call>``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import follows
from llmd.builtin.parsers.json_text import skip_space
from llmd.builtin.parsers.parameters import joined, required_of, schemas_of
from llmd.builtin.parsers.plain_values import plain_terms, read_plain
from llmd.builtin.parsers.script_reader import ScriptReader

BEGIN, END = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=(BEGIN, END))


def _open(tools: Sequence[Tool]) -> CallReader:
    schemas = {tool.name: schemas_of(tool) for tool in tools}
    return ScriptReader([BEGIN, FUNCTION], partial(_call, schemas))


def _call(schemas: Mapping[str, Mapping[str, Any]], cursor: Cursor, mark: str) -> Script[None]:
    if mark == BEGIN:
        yield from skip_space(cursor)
        yield from cursor.expect(FUNCTION)
    name = yield from cursor.until(">")
    if not name.strip() or "\n" in name:
        raise MalformedError
    cursor.begin_call(name.strip())
    cursor.arguments("{")
    yield from _parameters(cursor, schemas.get(name.strip(), {}))
    cursor.arguments("}")
    yield from follows(cursor, END)


def _parameters(cursor: Cursor, schemas: Mapping[str, Mapping[str, Any]]) -> Script[None]:
    lead = ""
    while True:
        yield from skip_space(cursor)
        if (yield from cursor.accept(FUNCTION_END)):
            return
        yield from cursor.expect(PARAMETER)
        key = yield from cursor.until(">")
        yield from cursor.accept("\n")
        cursor.arguments(f"{lead}{json.dumps(key, ensure_ascii=False)}: ")
        yield from read_plain(cursor, schemas.get(key, {}), (f"\n{PARAMETER_END}", PARAMETER_END))
        lead = ", "


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [
        (f"\n{FUNCTION}{tool.name}>\n", *joined(list(_members(tool)), ""), f"{FUNCTION_END}\n{END}")
        for tool in tools
    ]
    return CallGrammar(calls, trigger=BEGIN, separator=f"\n{BEGIN}")


def _members(tool: Tool) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    required, end = required_of(tool.parameters), f"\n{PARAMETER_END}\n"
    for name, schema in schemas_of(tool).items():
        value = plain_terms(schema, end)
        yield name in required, (f"{PARAMETER}{name}>\n", *value)
