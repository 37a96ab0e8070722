"""Reads the settings of one ``config.toml``, each with its line."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llmd.api.errors import ConfigError
from llmd.config.other_tools import answer_to_setting
from llmd.config.path_settings import absolute
from llmd.config.schema import PER_MODEL, Config
from llmd.config.setting_values import (
    MODELS,
    Origin,
    SettingValue,
    keys_by_name,
    known_key,
    model_table,
    setting_fields,
)
from llmd.config.toml_statements import line_numbers, statements

MAX_SYNTAX_ERRORS = 20
Report = Callable[[ConfigError], None]
"""Called with each error; it may raise it."""


def values_of_file(path: Path, report: Report, *, required: bool) -> Iterator[SettingValue]:
    """Yield the values of a file: those for all models before those for single models, which override them.

    ``report`` gets each error: the file is missing although ``required``, cannot be read, or has an unknown
    setting. Its other values are yielded.
    """
    text = _read(path, report, required=required)
    yield from values_of_text(path, text, report)


def values_of_text(path: Path, text: str, report: Report) -> Iterator[SettingValue]:
    """Yield the values of a file with this text, like `values_of_file`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = statements(text)
        faulty = [one for one in found if one.error][:MAX_SYNTAX_ERRORS]
        for one in faulty:
            report(_unreadable(path, one.error, one.line, setting=_begun_setting(one.text)))
        # What follows a header with an error would be in another table, and look wrong there.
        left_out = {
            number for one in (*faulty, *(one for one in found if one.is_stray)) for number in one.lines
        }
        text, tables = _without_lines(text, left_out, lambda rest: report(_unreadable(path, rest)))
    yield from _File(path, text, report).values(tables)


class _File:
    """A file that could be parsed."""

    def __init__(self, path: Path, text: str, report: Report) -> None:
        self._path = path
        self._text = text
        self._report = report

    def values(self, tables: dict[str, Any]) -> Iterator[SettingValue]:
        fields = setting_fields()
        keys = {key: key for key in fields} | {section: section for section in Config.__struct_fields__}
        models = self._table(tables.pop(MODELS, {}), (MODELS,))
        for section, table in tables.items():
            if self._known(section, {**keys, MODELS: MODELS}, (section,)) is None:
                continue
            for name, value in self._table(table, (section,)).items():
                path = (section, name)
                if key := self._known(f"{section}.{name}", keys, path):
                    yield SettingValue(key, self._origin(absolute(key, value, self._path.parent), path))
        for model, table in models.items():
            yield from self._of_model(model, self._table(table, (MODELS, model)))

    def _of_model(self, model: str, table: Mapping[str, Any]) -> Iterator[SettingValue]:
        all_keys = keys_by_name()
        keys = {name: all_keys[name] for name in PER_MODEL}
        for name, value in table.items():
            path = (MODELS, model, name)
            if isinstance(value, dict):
                message = f"the table of the model {model!r} contains a table {name!r}"
                hint = f"quote a model name with dots: [{model_table(f'{model}.{name}')}]"
                self._report(self._error(path, message, hint))
            elif name in all_keys and name not in keys:
                message = f"{name} cannot differ between models, but is set under [{model_table(model)}]"
                hint = f"set it under [{all_keys[name].partition('.')[0]}]"
                self._report(self._error(path, message, hint))
            elif key := self._known(name, keys, path, f"[{model_table(model)}] of "):
                yield SettingValue(key, self._origin(absolute(key, value, self._path.parent), path), model)

    def _known(self, name: str, keys: Mapping[str, str], path: Sequence[str], table: str = "") -> str | None:
        try:
            return known_key(name, keys, f"{table}{self._place(path)}")
        except ConfigError as error:
            place = keys_by_name().get(path[-1])
            if place is not None and not answer_to_setting(path[-1]):
                error.hint = f"put it below `[{place.partition('.')[0]}]`"
            self._report(_placed(error, self._path, self._line(path)))
            return None

    def _table(self, value: Any, path: Sequence[str]) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        name = path[0] if len(path) == 1 else model_table(path[1])
        self._report(self._error(path, f"{name} must be a table", f"start it with [{name}]"))
        return {}

    def _error(self, path: Sequence[str], message: str, hint: str) -> ConfigError:
        error = ConfigError(f"{self._place(path)}: {message}", hint=hint)
        return _placed(error, self._path, self._line(path))

    def _origin(self, value: Any, path: Sequence[str]) -> Origin:
        return Origin(value, str(self._path), self._line(path))

    def _place(self, path: Sequence[str]) -> str:
        return self._origin(None, path).place

    def _line(self, path: Sequence[str]) -> int | None:
        """Return the line of a key, or of the nearest table around it."""
        nearest = (tuple(path[:end]) for end in range(len(path), 0, -1))
        return next((self._lines[part] for part in nearest if part in self._lines), None)

    @functools.cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return line_numbers(self._text)


def _read(path: Path, report: Report, *, required: bool) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        if required:
            report(ConfigError(f"{path} does not exist", hint="check --config and LLMD_CONFIG"))
    except (OSError, UnicodeDecodeError) as error:
        report(_unreadable(path, str(error)))
    return ""


def _without_lines(
    text: str, faulty: Collection[int], report: Callable[[str], None]
) -> tuple[str, dict[str, Any]]:
    """Return the text with empty lines in place of faulty ones, and its tables.

    If it has still other faults, such as a key that is there twice, report them and return nothing.
    """
    lines = text.splitlines(keepends=True)
    kept = "".join("\n" if number in faulty else line for number, line in enumerate(lines, 1))
    try:
        return kept, tomllib.loads(kept)
    except tomllib.TOMLDecodeError as error:
        report(str(error))
        return "", {}


def _begun_setting(text: str) -> str:
    """Return the bare name of the setting that a line with an error begins with; empty if there is none."""
    name = text.partition("=")[0].strip().rpartition(".")[2]
    return name if name in keys_by_name() else ""


def _unreadable(path: Path, reason: str, line: int | None = None, *, setting: str = "") -> ConfigError:
    error = ConfigError(
        f"{Origin(None, str(path), line).place} cannot be read: {reason}",
        hint="correct it with `llmd config edit`, or move the file away",
    )
    return _placed(error, path, line, setting)


def _placed(error: ConfigError, path: Path, line: int | None, setting: str = "") -> ConfigError:
    error.file, error.line, error.setting = path, line, setting
    return error
