"""Hermes, Qwen 2.5 and 3, Granite 4: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` per call."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Tool
from llmd.builtin.parsers.json_calls import call_terms, json_calls
from llmd.builtin.parsers.script_reader import ScriptReader

BEGIN, END = "<tool_call>", "</tool_call>"


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=(BEGIN, END))


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([BEGIN], json_calls(closing=END))


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [call_terms(tool, before="\n", after=f"\n{END}") for tool in tools]
    return CallGrammar(calls, trigger=BEGIN, separator=f"\n{BEGIN}")
