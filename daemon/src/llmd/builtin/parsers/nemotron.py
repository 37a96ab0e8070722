"""Nemotron Nano 2: ``<TOOLCALL>[{"name": …, "arguments": {…}}, …]</TOOLCALL>``."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, Tool
from llmd.builtin.parsers.json_calls import call_terms, json_calls
from llmd.builtin.parsers.script_reader import ScriptReader

BEGIN, END = "<TOOLCALL>", "</TOOLCALL>"


def load() -> CallFormat:
    return CallFormat(_open, _grammar, (BEGIN, END))


def _open(_tools: Sequence[Tool]) -> CallReader:
    return ScriptReader((BEGIN,), json_calls(closing=END))


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [call_terms(tool) for tool in tools]
    return CallGrammar(calls, trigger=BEGIN, opening="[", separator=", ", closing=f"]{END}")
