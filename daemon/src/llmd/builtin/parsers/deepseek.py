"""DeepSeek V3 and R1 write a call's arguments in a fenced block, V3.1 directly after its name."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, SchemaTerm, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import follows
from llmd.builtin.parsers.json_text import read_object, skip_space
from llmd.builtin.parsers.script_reader import ScriptReader

CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, SEPARATOR, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
FENCE, FENCE_END = "```json", "```"
MARKS = (CALLS, CALLS_END, CALL, SEPARATOR, CALL_END)


def load_v3() -> CallFormat:
    return CallFormat(_open, _grammar_v3, MARKS)


def load_v31() -> CallFormat:
    return CallFormat(_open, _grammar_v31, MARKS)


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([CALLS], _calls)


def _calls(cursor: Cursor, _mark: str) -> Script[None]:
    yield from skip_space(cursor)
    yield from cursor.expect(CALL)
    yield from _call(cursor)
    while (yield from follows(cursor, CALL)):
        yield from _call(cursor)
    yield from follows(cursor, CALLS_END)


def _call(cursor: Cursor) -> Script[None]:
    head = yield from cursor.until(SEPARATOR)
    yield from skip_space(cursor)
    if (yield from cursor.peek()) != "{":
        head = yield from cursor.until("\n")
        yield from skip_space(cursor)
        yield from cursor.accept(FENCE)
        yield from skip_space(cursor)
    if not head.strip() or (yield from cursor.peek()) != "{":
        raise MalformedError
    cursor.begin_call(head.strip())
    yield from cursor.arguments_from(read_object(cursor))
    yield from follows(cursor, FENCE_END)
    yield from follows(cursor, CALL_END)


def _grammar_v3(tools: Sequence[Tool]) -> CallGrammar:
    calls = [
        (
            f"{CALL}function{SEPARATOR}{tool.name}\n{FENCE}\n",
            SchemaTerm(tool.parameters),
            f"\n{FENCE_END}{CALL_END}",
        )
        for tool in tools
    ]
    return CallGrammar(calls, trigger=CALLS, separator="\n", closing=CALLS_END)


def _grammar_v31(tools: Sequence[Tool]) -> CallGrammar:
    calls = [(f"{CALL}{tool.name}{SEPARATOR}", SchemaTerm(tool.parameters), CALL_END) for tool in tools]
    return CallGrammar(calls, trigger=CALLS, closing=CALLS_END)
