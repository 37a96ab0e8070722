"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Parser, hookimpl

if TYPE_CHECKING:
    from llmd.api import ReasoningMarks

LLMD_API = 2
BEGIN, END = "<ponder>", "</ponder>"


@hookimpl
def llmd_parsers() -> Sequence[Parser]:
    return [Parser("example", "reasoning", matches=matches, load=load)]


def matches(template: str) -> int:
    """Rate a chat template: this family's templates contain the mark."""
    return 2 if BEGIN in template else 0


def load() -> ReasoningMarks:
    """Return the marks."""
    from llmd.api import ReasoningMarks

    return ReasoningMarks(BEGIN, END)
