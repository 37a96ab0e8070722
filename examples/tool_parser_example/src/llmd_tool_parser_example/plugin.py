"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Parser, hookimpl

if TYPE_CHECKING:
    from llmd.api.parsing import CallFormat

LLMD_API = 2
BEGIN, END = "<invoke>", "</invoke>"


@hookimpl
def llmd_parsers() -> Sequence[Parser]:
    return [Parser("example", "calls", matches=matches, load=load)]


def matches(template: str) -> int:
    """Rate a chat template: this family's templates contain the mark."""
    return 2 if BEGIN in template else 0


def load() -> CallFormat:
    """Return the reader and the grammar of the calls."""
    from llmd.api.parsing import CallFormat
    from llmd_tool_parser_example.grammar import call_grammar
    from llmd_tool_parser_example.reader import open_reader

    return CallFormat(open_reader, call_grammar, marks=(BEGIN, END))
