"""Llama 3: an answer that is ``{"name": …, "parameters": {…}}``, sometimes after ``<|python_tag|>``.

Only its form marks such a call, so it counts only if its name is that of an offered tool.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Tool
from llmd.builtin.parsers.json_calls import call_terms, json_calls
from llmd.builtin.parsers.script_reader import ScriptReader

MARK = "<|python_tag|>"


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=(MARK,))


def _open(tools: Sequence[Tool]) -> CallReader:
    names = {tool.name for tool in tools}
    return ScriptReader([MARK], json_calls(separator=";", names=names), at_start=True)


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [call_terms(tool, key="parameters") for tool in tools]
    return CallGrammar(calls, trigger="", separator="; ", at_start=True)
