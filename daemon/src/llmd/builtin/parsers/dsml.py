"""DeepSeek-V3.2: calls in its mark-up language DSML, with a tag for each parameter.

A value is a text as it is (``string="true"``) or JSON (``string="false"``)::

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="NAME">
    <｜DSML｜parameter name="KEY" string="true">text</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import skip_space
from llmd.builtin.parsers.parameters import is_text, joined, required_of, schemas_of
from llmd.builtin.parsers.plain_values import plain_terms, read_plain
from llmd.builtin.parsers.script_reader import ScriptReader

CALLS, CALLS_END = "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"
CALL, CALL_END = '<｜DSML｜invoke name="', "</｜DSML｜invoke>"
PARAMETER, PARAMETER_END = '<｜DSML｜parameter name="', "</｜DSML｜parameter>"
NAME_END, KEY_END = '">', '" string="'
SCHEMAS = {"true": {"type": "string"}, "false": {}}
"""What a value may be, by the attribute ``string`` of its parameter."""


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=("｜DSML｜",))


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([CALLS], _calls)


def _calls(cursor: Cursor, _mark: str) -> Script[None]:
    yield from skip_space(cursor)
    yield from cursor.expect(CALL)
    while True:
        yield from _call(cursor)
        yield from skip_space(cursor)
        if (yield from cursor.accept(CALLS_END)):
            return
        yield from cursor.expect(CALL)


def _call(cursor: Cursor) -> Script[None]:
    name = yield from cursor.until(NAME_END)
    if not name or "\n" in name:
        raise MalformedError
    cursor.begin_call(name)
    cursor.arguments("{")
    lead = ""
    while True:
        yield from skip_space(cursor)
        if (yield from cursor.accept(CALL_END)):
            cursor.arguments("}")
            return
        yield from cursor.expect(PARAMETER)
        key = yield from cursor.until(KEY_END)
        kind = yield from cursor.until(NAME_END)
        cursor.arguments(f"{lead}{json.dumps(key, ensure_ascii=False)}: ")
        yield from read_plain(cursor, SCHEMAS.get(kind, {}), (PARAMETER_END,))
        lead = ", "


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    # Line breaks end calls: as a separator and as the beginning of the closing mark, grammars could not tell
    # them apart.
    calls = [
        (f"{CALL}{tool.name}{NAME_END}\n", *joined(list(_members(tool)), ""), f"{CALL_END}\n")
        for tool in tools
    ]
    return CallGrammar(calls, trigger=CALLS, opening="\n", separator="", closing=CALLS_END)


def _members(tool: Tool) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    required = required_of(tool.parameters)
    for name, schema in schemas_of(tool).items():
        kind = "true" if is_text(schema) else "false"
        value = plain_terms(schema, f"{PARAMETER_END}\n")
        yield name in required, (f"{PARAMETER}{name}{KEY_END}{kind}{NAME_END}", *value)
