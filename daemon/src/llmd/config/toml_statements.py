"""Splits TOML text into statements, to know the line of each key and what else is wrong after an error.

Also writes the paths of keys.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
MAX_LINES = 100
"""Most lines of a statement that cannot be parsed: a mistake must not make the rest of a long file slow."""


class Statement(Struct, frozen=True):
    """A table header, a key with its value, or a line without either (a comment, a blank line)."""

    line: int
    """Number of its first line, from 1."""
    text: str
    """All of its lines, with line breaks."""
    table: tuple[str, ...] = ()
    """The table that it is in; of a header: its own table."""
    keys: tuple[str, ...] = ()
    """The key below the table; empty for a header, and for a line without a key."""
    is_header: bool = False
    error: str = ""
    """What is wrong with it; then it is one line."""

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.table, *self.keys)


def statements(text: str) -> list[Statement]:
    """Split a text. Each statement is parsed on its own; a line that does not begin one has an ``error``.

    Errors that concern several statements, such as a key that is set twice, are not found.
    """
    lines = text.splitlines(keepends=True)
    found: list[Statement] = []
    table: tuple[str, ...] = ()
    start = 0
    while start < len(lines):
        statement = _statement(lines, start, table)
        found.append(statement)
        table = statement.table
        start += statement.text.count("\n") or 1
    return found


def dotted(path: Sequence[str]) -> str:
    """Write a path of keys in TOML, quoting those that must be."""
    return ".".join(
        name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path
    )


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each key and table, by its path."""
    lines: dict[tuple[str, ...], int] = {}
    for statement in statements(text):
        if statement.keys or statement.is_header:
            lines.setdefault(statement.path, statement.line)
    return lines


def _statement(lines: list[str], start: int, table: tuple[str, ...]) -> Statement:
    """Return the statement that begins at a line: the fewest lines that can be parsed together."""
    first_error = ""
    for text in itertools.accumulate(lines[start : start + MAX_LINES]):
        try:
            parsed = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            first_error = first_error or _without_place(error)
            continue
        if text.lstrip().startswith("["):  # no key begins with a bracket
            return Statement(start + 1, text, _only_path(parsed), is_header=True)
        return Statement(start + 1, text, table, _only_path(parsed))
    return Statement(start + 1, lines[start], table, error=first_error)


def _only_path(parsed: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the only key of a parsed statement, as far as its tables were not written inline."""
    return tuple(_path(parsed))


def _path(parsed: Any) -> Iterator[str]:
    while isinstance(parsed, dict) and len(parsed) == 1:
        ((key, parsed),) = parsed.items()
        yield key


def _without_place(error: tomllib.TOMLDecodeError) -> str:
    """Return the message without the line, which counts from the statement's first one."""
    return str(error).rpartition(" (at ")[0] or str(error)
