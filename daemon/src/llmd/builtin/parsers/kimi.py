"""Kimi K2 and Kimi Linear: calls of ``functions.NAME:INDEX`` in a section, the arguments after a mark.

INDEX counts the calls of a conversation (`llmd.chat.tools.call_ids`). Some answers write the marks of the
section in the singular. Source: ``docs/tool_call_guidance.md`` of huggingface.co/moonshotai/Kimi-K2-Instruct.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, SchemaTerm, TextTerm, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import follows
from llmd.builtin.parsers.json_text import read_object, skip_space
from llmd.builtin.parsers.script_reader import ScriptReader

SECTIONS = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
SECTION_ENDS = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
CALL, ARGUMENTS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_HEAD = re.compile(r"\s*(?:functions\.)?(\S+):[0-9]+\s*")


def load() -> CallFormat:
    return CallFormat(_open, _grammar, (*SECTIONS, *SECTION_ENDS, CALL, ARGUMENTS, CALL_END))


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader(SECTIONS, _calls)


def _calls(cursor: Cursor, _mark: str) -> Script[None]:
    yield from skip_space(cursor)
    yield from cursor.expect(CALL)
    yield from _call(cursor)
    while (yield from follows(cursor, CALL)):
        yield from _call(cursor)
    for end in SECTION_ENDS:
        if (yield from follows(cursor, end)):
            return


def _call(cursor: Cursor) -> Script[None]:
    head = _HEAD.fullmatch((yield from cursor.until(ARGUMENTS)))
    yield from skip_space(cursor)
    if head is None or (yield from cursor.peek()) != "{":
        raise MalformedError
    cursor.begin_call(head.group(1))
    yield from cursor.arguments_from(read_object(cursor))
    yield from follows(cursor, CALL_END)


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    index = TextTerm(ARGUMENTS, "(?:0|[1-9][0-9]{0,3})")
    calls = [
        (f"{CALL}functions.{tool.name}:", index, SchemaTerm(tool.parameters), CALL_END) for tool in tools
    ]
    return CallGrammar(calls, trigger=SECTIONS[0], closing=SECTION_ENDS[0])
