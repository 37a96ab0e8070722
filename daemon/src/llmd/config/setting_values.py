"""Reads setting values from every source, weakest first: files, the environment, flags."""

from __future__ import annotations

import difflib
import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, inspect

from llmd.api.errors import ConfigError
from llmd.config.directories import Directories
from llmd.config.other_tools import answer_to_setting
from llmd.config.schema import PER_MODEL, Config

PREFIX = "LLMD_"
CONFIG_FILE_VARIABLE = "LLMD_CONFIG"
TEST_PREFIX = "LLMD_TEST_"
MODELS = "models"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Origin(Struct, frozen=True):
    """A value and its origin: ``default``, ``--flag``, a variable or a file."""

    value: Any
    source: str


class SettingValue(Struct, frozen=True):
    """A raw value given for ``key``, for one model or for all."""

    key: str
    origin: Origin
    model: str | None = None


class UnknownVariable(Struct, frozen=True):
    """A variable that looks like a setting but is not one; ``hint`` suggests what was meant."""

    name: str
    hint: str


def setting_values(
    flags: Mapping[str, Any], environ: Mapping[str, str], directories: Directories, named: Path | None
) -> Iterator[SettingValue]:
    """Yield every given value, weakest source first. ``named`` replaces the user's file.

    Raises:
        ConfigError: a file cannot be read, or a setting is unknown.
    """
    yield from _from_file(directories.system_config, required=False)
    yield from _from_file(named or directories.user_config, required=named is not None)
    yield from _from_environment(environ)
    keys = _keys_by_name()
    for name, value in flags.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            yield SettingValue(_known(name, keys, flag), Origin(value, flag))


def _keys_by_name() -> dict[str, str]:
    return {key.partition(".")[2]: key for key in setting_fields()}


def _from_file(path: Path, *, required: bool) -> Iterator[SettingValue]:
    """Yield values for all models before those for single models, which override them."""
    fields = setting_fields()
    keys = {key: key for key in fields} | {section: section for section in Config.__struct_fields__}
    tables = _read_toml(path, required=required)
    models = _table(tables.pop(MODELS, {}), MODELS, path)
    for section, table in tables.items():
        _known(section, {**keys, MODELS: MODELS}, str(path))
        for name, value in _table(table, section, path).items():
            yield SettingValue(_known(f"{section}.{name}", keys, str(path)), Origin(value, str(path)))
    for model, table in models.items():
        yield from _of_model(path, model, _table(table, _model_table(model), path))


def _of_model(path: Path, model: str, table: Mapping[str, Any]) -> Iterator[SettingValue]:
    all_keys = _keys_by_name()
    keys = {name: all_keys[name] for name in PER_MODEL}
    for name, value in table.items():
        if isinstance(value, dict):
            raise ConfigError(
                f"{path}: the table of the model {model!r} contains a table {name!r}",
                hint=f"quote a model name with dots: [{_model_table(f'{model}.{name}')}]",
            )
        if name in all_keys and name not in keys:
            raise ConfigError(
                f"{path}: {name} cannot differ between models, but is set under [{_model_table(model)}]",
                hint=f"set it under [{all_keys[name].partition('.')[0]}]",
            )
        yield SettingValue(
            _known(name, keys, f"[{_model_table(model)}] of {path}"), Origin(value, str(path)), model
        )


def _table(value: Any, name: str, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} must be a table", hint=f"start it with [{name}]")
    return value


def _read_toml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError) as error:
        if required:
            raise ConfigError(f"{path} does not exist", hint="check --config and LLMD_CONFIG") from error
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint="fix the file or move it away") from error


def _from_environment(environ: Mapping[str, str]) -> Iterator[SettingValue]:
    keys = _variables()
    for variable, text in environ.items():
        if variable in keys and text:
            yield SettingValue(keys[variable], Origin(text, variable))


def unknown_variables(environ: Mapping[str, str]) -> Iterator[UnknownVariable]:
    """Yield the variables that have the prefix of settings but are not settings.

    Unlike an unknown name in a file, they are not an error: a variable may be for another version of llmd, or
    for another program with the same prefix.
    """
    keys = _variables()
    for variable, text in environ.items():
        known = variable in keys or variable == CONFIG_FILE_VARIABLE or variable.startswith(TEST_PREFIX)
        if variable.startswith(PREFIX) and text and not known:
            yield UnknownVariable(variable, _hint(variable, keys))


def _variables() -> dict[str, str]:
    """Return the setting keys by variable."""
    return {f"{PREFIX}{name.upper()}": key for name, key in _keys_by_name().items()}


def _known(name: str, keys: Mapping[str, str], source: str) -> str:
    if name in keys:
        return keys[name]
    raise ConfigError(f"unknown setting {name!r} in {source}", hint=_hint(name, keys))


def _hint(name: str, keys: Mapping[str, str]) -> str:
    """Suggest what an unknown name may mean."""
    if answer := answer_to_setting(_last_part(name)):
        return answer
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
    return f"the nearest name is {near[0]}" if near else "`llmd config show` lists every setting"


def _last_part(name: str) -> str:
    """Strip the section or the variable prefix from a name."""
    return name.rpartition(".")[2].removeprefix(PREFIX)


@functools.cache
def setting_fields() -> dict[str, inspect.Field]:
    """Return each setting's type and default by ``section.name``."""
    return {
        f"{section.name}.{field.name}": field
        for section in struct_fields(Config)
        if isinstance(section.type, inspect.StructType)
        for field in _flat_fields(section.type.cls)
    }


@functools.cache
def struct_fields(kind: type[Struct]) -> tuple[inspect.Field, ...]:
    """Return the fields of a struct with their types."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _flat_fields(section: type[Struct]) -> Iterator[inspect.Field]:
    """The settings of a section and of its parts."""
    for field in struct_fields(section):
        if isinstance(field.type, inspect.StructType):
            yield from _flat_fields(field.type.cls)
        else:
            yield field


def setting_name(key: str, model: str | None) -> str:
    """Return a setting's name for messages: ``engine.max_ctx``, or ``models."org/name".max_ctx`` for one
    model.
    """
    if model is None:
        return key
    return f"{_model_table(model)}.{key.partition('.')[2]}"


def _model_table(model: str) -> str:
    """Return the name of a model's table in TOML."""
    return f"{MODELS}.{model if _BARE_KEY.fullmatch(model) else json.dumps(model, ensure_ascii=False)}"
