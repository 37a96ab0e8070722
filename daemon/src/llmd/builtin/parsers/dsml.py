"""DeepSeek-V3.2 and V4: calls in their mark-up language DSML, with a tag for each parameter.

A value is a text as it is (``string="true"``) or JSON (``string="false"``)::

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="NAME">
    <｜DSML｜parameter name="KEY" string="true">text</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

In V4, the outer tag is ``tool_calls``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import skip_space
from llmd.builtin.parsers.parameters import is_text, joined, required_of, schemas_of
from llmd.builtin.parsers.plain_values import plain_terms, read_plain
from llmd.builtin.parsers.script_reader import ScriptReader

CALL, CALL_END = '<｜DSML｜invoke name="', "</｜DSML｜invoke>"
PARAMETER, PARAMETER_END = '<｜DSML｜parameter name="', "</｜DSML｜parameter>"
NAME_END, KEY_END = '">', '" string="'
SCHEMAS = {"true": {"type": "string"}, "false": {}}
"""What a value may be, by the attribute ``string`` of its parameter."""


def load_v32() -> CallFormat:
    return _format_of("function_calls")


def load_v4() -> CallFormat:
    return _format_of("tool_calls")


def _format_of(outer: str) -> CallFormat:
    """Return the format of calls within a tag."""
    begin, end = f"<｜DSML｜{outer}>", f"</｜DSML｜{outer}>"
    return CallFormat(partial(_open, begin, end), partial(_grammar, begin, end), marks=("｜DSML｜",))


def _open(begin: str, end: str, _tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([begin], partial(_calls, end))


def _calls(end: str, cursor: Cursor, _mark: str) -> Script[None]:
    yield from skip_space(cursor)
    yield from cursor.expect(CALL)
    while True:
        yield from _call(cursor)
        yield from skip_space(cursor)
        if (yield from cursor.accept(end)):
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


def _grammar(begin: str, end: str, tools: Sequence[Tool]) -> CallGrammar:
    # Line breaks end calls: as a separator and as the beginning of the closing mark, grammars could not tell
    # them apart.
    calls = [
        (f"{CALL}{tool.name}{NAME_END}\n", *joined(list(_members(tool)), ""), f"{CALL_END}\n")
        for tool in tools
    ]
    return CallGrammar(calls, trigger=begin, opening="\n", separator="", closing=end)


def _members(tool: Tool) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    required = required_of(tool.parameters)
    for name, schema in schemas_of(tool).items():
        kind = "true" if is_text(schema) else "false"
        value = plain_terms(schema, f"{PARAMETER_END}\n")
        yield name in required, (f"{PARAMETER}{name}{KEY_END}{kind}{NAME_END}", *value)
