"""Read JSON as it arrives; invalid JSON raises `MalformedError`."""

from __future__ import annotations

import json
import re

from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script

# Deeper values are refused, as elsewhere at the daemon's inputs.
MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_SCALAR = re.compile(r"[-+.0-9A-Za-z]*")
_SCALARS = re.compile(r"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\Z")
_HEX = frozenset("0123456789abcdefABCDEF")


def skip_space(cursor: Cursor) -> Script[str]:
    """Read JSON's whitespace."""
    return (yield from cursor.run(_SPACE))


def read_value(cursor: Cursor, depth: int = 0) -> Script[None]:
    """Read any value."""
    if depth > MAX_DEPTH:
        raise MalformedError
    char = yield from cursor.peek()
    if char == '"':
        yield from read_string(cursor)
    elif char == "{":
        yield from read_object(cursor, depth)
    elif char == "[":
        yield from _read_array(cursor, depth)
    elif not _SCALARS.match((yield from cursor.run(_SCALAR))):
        raise MalformedError


def read_object(cursor: Cursor, depth: int = 0) -> Script[None]:
    """Read an object."""
    yield from cursor.expect("{")
    yield from skip_space(cursor)
    if (yield from cursor.accept("}")):
        return
    while True:
        yield from read_key(cursor)
        yield from read_value(cursor, depth + 1)
        if not (yield from next_item(cursor, "}")):
            return


def read_key(cursor: Cursor) -> Script[str]:
    """Read a key, its colon, and the whitespace after it."""
    key = yield from read_string(cursor)
    yield from skip_space(cursor)
    yield from cursor.expect(":")
    yield from skip_space(cursor)
    return key


def next_item(cursor: Cursor, closing: str) -> Script[bool]:
    """Read the separator before the next item; return False if ``closing`` was read instead."""
    yield from skip_space(cursor)
    if (yield from cursor.accept(closing)):
        return False
    yield from cursor.expect(",")
    yield from skip_space(cursor)
    return True


def read_string(cursor: Cursor) -> Script[str]:
    """Read a string and return its decoded value."""
    yield from cursor.expect('"')
    raw = ""
    while True:
        raw += yield from cursor.run(_PLAIN)
        char = yield from cursor.read()
        if char == '"':
            decoded: str = json.loads(f'"{raw}"')
            return decoded
        if char != "\\":
            raise MalformedError
        raw += char + (yield from _read_escape(cursor))


def _read_escape(cursor: Cursor) -> Script[str]:
    char = yield from cursor.read()
    if char != "u":
        if not char or char not in '"\\/bfnrt':
            raise MalformedError
        return char
    digits = ""
    for _ in range(4):
        digit = yield from cursor.read()
        if digit not in _HEX:
            raise MalformedError
        digits += digit
    return char + digits


def _read_array(cursor: Cursor, depth: int) -> Script[None]:
    yield from cursor.expect("[")
    yield from skip_space(cursor)
    if (yield from cursor.accept("]")):
        return
    while True:
        yield from read_value(cursor, depth + 1)
        if not (yield from next_item(cursor, "]")):
            return
