"""Mistral: ``[TOOL_CALLS][{"name": …, "arguments": {…}}, …]``; since tokenizer version 11
``[TOOL_CALLS]name[ARGS]{…}``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, SchemaTerm, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import call_terms, json_calls
from llmd.builtin.parsers.json_text import read_object, skip_space
from llmd.builtin.parsers.script_reader import ScriptReader

CALLS, CALL_ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAME = re.compile(r"[A-Za-z0-9_.:/-]*")
_listed = json_calls()


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=(CALLS,))


def load_v11() -> CallFormat:
    return CallFormat(_open, _grammar_v11, marks=(CALLS, CALL_ID, ARGUMENTS))


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([CALLS], _calls)


def _calls(cursor: Cursor, mark: str) -> Script[None]:
    yield from skip_space(cursor)
    if (yield from cursor.peek()) in {"[", "{"}:
        yield from _listed(cursor, mark)
        return
    name = yield from cursor.run(_NAME)
    if (yield from cursor.accept(CALL_ID)):
        yield from cursor.run(_NAME)
    yield from cursor.accept(ARGUMENTS)
    yield from skip_space(cursor)
    if not name or (yield from cursor.peek()) != "{":
        raise MalformedError
    cursor.begin_call(name)
    yield from cursor.arguments_from(read_object(cursor))


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [call_terms(tool) for tool in tools]
    return CallGrammar(calls, trigger=CALLS, opening="[", separator=", ", closing="]")


def _grammar_v11(tools: Sequence[Tool]) -> CallGrammar:
    calls = [(f"{tool.name}{ARGUMENTS}", SchemaTerm(tool.parameters)) for tool in tools]
    return CallGrammar(calls, trigger=CALLS, separator=CALLS)
