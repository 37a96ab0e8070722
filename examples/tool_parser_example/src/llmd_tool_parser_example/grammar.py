"""What an answer must look like if calls are enforced."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.parsing import CallGrammar, SchemaTerm, Tool
from llmd_tool_parser_example.plugin import BEGIN, END


def call_grammar(tools: Sequence[Tool]) -> CallGrammar:
    """Return the grammar: after the mark, the name of a tool and its arguments; then perhaps another call."""
    calls = [(f"{tool.name} ", SchemaTerm(tool.parameters), END) for tool in tools]
    return CallGrammar(calls, trigger=BEGIN, separator=BEGIN)
