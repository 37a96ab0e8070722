"""Changes one key of a TOML text; every other line stays as it is, with its comments."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from llmd.api.errors import ConfigError
from llmd.config.toml_statements import Statement, dotted, statements

Path = tuple[str, ...]


def with_value(text: str, path: Path, value: Any) -> str:
    """Return the text with the key at ``path`` set to a value: in its line, or in a new line of its table.

    Raises:
        ConfigError: the text is not TOML, or the key is in a table that is written in one line.
    """

    def set_in(document: dict[str, Any]) -> None:
        table = document
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value

    lines = _complete(text)
    present = [one for one in lines if one.keys and one.path == path]
    changed = _replaced(lines, present[0], value) if present else _added(lines, path, value)
    return _checked(text, changed, set_in)


def without(text: str, path: Path) -> str:
    """Return the text without the key at ``path``; the same text if it has none.

    Raises:
        ConfigError: the text is not TOML, or the key is in a table that is written in one line.
    """

    def remove_from(document: dict[str, Any]) -> None:
        table: Any = document
        for name in path[:-1]:
            table = table.get(name, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            table.pop(path[-1], None)

    kept = [one.text for one in statements(text) if not (one.keys and one.path == path)]
    return _checked(text, "".join(kept), remove_from, leaves_empty_tables=True)


def toml_value(value: Any) -> str:
    """Write a text, number, truth value or list of these in TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _complete(text: str) -> list[Statement]:
    """Return the statements, the last one with a line break."""
    return statements(text if text.endswith("\n") or not text else text + _line_break(text))


def _replaced(lines: list[Statement], old: Statement, value: Any) -> str:
    before = next(one for one in _cuts(old.text, "=") if _parses(f"{one}= 0"))
    rest = next((one for one in _cuts(old.text, "#") if _parses(one)), old.text)
    comment = old.text[len(rest.rstrip()) :]
    new = f"{before}= {toml_value(value)}{comment}"
    return "".join(new if one is old else one.text for one in lines)


def _added(lines: list[Statement], path: Path, value: Any) -> str:
    """Add a line after the last key of its table, or a table at the end."""
    *tables, name = path
    table = tuple(tables)
    texts = [one.text for one in lines]
    end = _line_break("".join(texts))
    in_table = [
        index for index, one in enumerate(lines) if one.table == table and (one.keys or one.is_header)
    ]
    dotted_there = [index for index, one in enumerate(lines) if one.keys and one.path[:-1] == table]
    if in_table:
        texts.insert(in_table[-1] + 1, f"{dotted([name])} = {toml_value(value)}{end}")
    elif dotted_there:
        last = lines[dotted_there[-1]]
        texts.insert(dotted_there[-1] + 1, f"{dotted(path[len(last.table) :])} = {toml_value(value)}{end}")
    else:
        gap = [end] if texts and texts[-1].strip() else []
        texts += [*gap, f"[{dotted(table)}]{end}", f"{dotted([name])} = {toml_value(value)}{end}"]
    return "".join(texts)


def _checked(
    old: str, new: str, change: Callable[[dict[str, Any]], None], *, leaves_empty_tables: bool = False
) -> str:
    """Return the new text if its values are the old ones with the change.

    Raises:
        ConfigError: they are not: the lines were written in a way that this module does not change.
    """
    try:
        wanted, got = copy.deepcopy(tomllib.loads(old)), tomllib.loads(new)
        change(wanted)
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        wanted, got = {}, {"": None}
    if leaves_empty_tables:
        wanted, got = _without_empty(wanted), _without_empty(got)
    if wanted != got:
        raise ConfigError(
            "the file has errors, or a table in one line, so that this command cannot change the setting",
            hint="`llmd config check` shows the errors; change it with `llmd config edit`",
        )
    return new


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Drop tables without keys: a table of dotted keys ends with its last key."""
    smaller = {key: _without_empty(one) if isinstance(one, dict) else one for key, one in document.items()}
    return {key: one for key, one in smaller.items() if one != {}}


def _cuts(text: str, character: str) -> Iterator[str]:
    """Yield the beginning of a text before each place of a character."""
    return (text[:index] for index, one in enumerate(text) if one == character)


def _parses(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
