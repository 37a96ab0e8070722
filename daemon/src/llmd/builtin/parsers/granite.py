"""Granite 3: ``<|tool_call|>[{"name": …, "arguments": {…}}, …]``; 3.1 writes ``<tool_call>``."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Tool
from llmd.builtin.parsers.json_calls import call_terms, json_calls
from llmd.builtin.parsers.script_reader import ScriptReader

MARKS = ("<|tool_call|>", "<tool_call>")


def load() -> CallFormat:
    return CallFormat(_open, _grammar, MARKS)


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader(MARKS, json_calls())


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [call_terms(tool) for tool in tools]
    return CallGrammar(calls, trigger=MARKS[0], opening="[", separator=", ", closing="]")
