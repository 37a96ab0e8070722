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

from msgspec import Struct, structs

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ASSIGNMENT = re.compile(r"(?P<key>[\w.\"'-]+)\s*=\s*(?P<value>[^=#\s]|[^=#\s][^=#]*[^=#\s])\s*(#.*)?")
_UNQUOTED = re.compile(r"[^\[\]{}\"']*[^\W\d_][^\[\]{}\"']*")
"""A value with a letter that is neither quoted nor a list."""
_QUOTES = ('"', "'")
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
    is_stray: bool = False
    """Whether the header of its table has an error, so that ``table`` is another one."""

    @property
    def lines(self) -> range:
        """The numbers of its lines."""
        return range(self.line, self.line + (self.text.count("\n") or 1))

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
    start, is_stray = 0, False
    while start < len(lines):
        statement = _statement(lines, start, table)
        if statement.text.lstrip().startswith("["):
            is_stray = bool(statement.error)
        found.append(structs.replace(statement, is_stray=is_stray))
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
            first_error = first_error or _explained(lines[start]) or _without_place(error)
            continue
        if text.lstrip().startswith("["):  # no key begins with a bracket
            return Statement(start + 1, text, _only_path(parsed), is_header=True)
        return Statement(start + 1, text, table, _only_path(parsed))
    return Statement(start + 1, lines[start], table, error=first_error)


def _explained(line: str) -> str:
    """Say what is wrong with a line to people who do not know TOML; empty if the parser's words do."""
    match = _ASSIGNMENT.fullmatch(line.strip())
    if match is None:
        return ""
    key, value = match["key"], match["value"]
    bare = value.strip("\"'")
    if (value[0] in _QUOTES) != (value[-1] in _QUOTES) or value in _QUOTES:
        return f'the text has a quote at one end only; write {key} = "{bare}"'
    if value.lower() in {"true", "false"}:
        return f"switches have no capitals: {key} = {value.lower()}"
    return f'texts need quotes: {key} = "{value}"' if _UNQUOTED.fullmatch(value) else ""


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
