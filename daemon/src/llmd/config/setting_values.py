"""What every source says of settings, the weakest first: files, the environment, flags."""

from __future__ import annotations

import difflib
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
    """A value and where it came from: ``default``, ``--flag``, a variable or a file."""

    value: Any
    source: str


class SettingValue(Struct, frozen=True):
    """A value as it was given for ``key``, of one model or of all."""

    key: str
    origin: Origin
    model: str | None = None


class UnknownVariable(Struct, frozen=True):
    """A variable that looks like a setting and is none; ``hint`` says what it may be meant for."""

    name: str
    hint: str


def setting_values(
    flags: Mapping[str, Any], environ: Mapping[str, str], directories: Directories, named: Path | None
) -> Iterator[SettingValue]:
    """Every value that was given, weakest source first. ``named`` stands in for the user's file.

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
    """What a file says of all models comes before what it says of one, which is the stronger."""
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
                f"{path}: there is a table {name!r} in that of the model {model!r}",
                hint=f"a name with dots stands in quotes: [{_model_table(f'{model}.{name}')}]",
            )
        if name in all_keys and name not in keys:
            raise ConfigError(
                f"{path}: {name} cannot differ between models, and stands under [{_model_table(model)}]",
                hint=f"write it under [{all_keys[name].partition('.')[0]}]",
            )
        yield SettingValue(
            _known(name, keys, f"[{_model_table(model)}] of {path}"), Origin(value, str(path)), model
        )


def _table(value: Any, name: str, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} must be a table", hint=f"begin it with [{name}]")
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
    """The variables that have the prefix of settings and no meaning.

    They end no command, as an unknown name in a file does: a variable may be there for another version of llmd, or for a
    program that has taken the same prefix.
    """
    keys = _variables()
    for variable, text in environ.items():
        known = variable in keys or variable == CONFIG_FILE_VARIABLE or variable.startswith(TEST_PREFIX)
        if variable.startswith(PREFIX) and text and not known:
            yield UnknownVariable(variable, _hint(variable, keys))


def _variables() -> dict[str, str]:
    """Each setting by its variable."""
    return {f"{PREFIX}{name.upper()}": key for name, key in _keys_by_name().items()}


def _known(name: str, keys: Mapping[str, str], source: str) -> str:
    if name in keys:
        return keys[name]
    raise ConfigError(f"unknown setting {name!r} in {source}", hint=_hint(name, keys))


def _hint(name: str, keys: Mapping[str, str]) -> str:
    """What an unknown name may be meant for."""
    if answer := answer_to_setting(_last_part(name)):
        return answer
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
    return f"the nearest name is {near[0]}" if near else "`llmd config show` lists every setting"


def _last_part(name: str) -> str:
    """The name without its section or the prefix of variables."""
    return name.rpartition(".")[2].removeprefix(PREFIX)


def setting_fields() -> dict[str, inspect.Field]:
    """Each setting's type and default by ``section.name``."""
    sections = inspect.type_info(Config)
    assert isinstance(sections, inspect.StructType)
    return {
        f"{section.name}.{field.name}": field
        for section in sections.fields
        if isinstance(section.type, inspect.StructType)
        for field in section.type.fields
    }


def setting_name(key: str, model: str | None) -> str:
    """What a setting is called in messages: ``engine.max_ctx``, or ``models."org/name".max_ctx`` of one model."""
    if model is None:
        return key
    return f"{_model_table(model)}.{key.partition('.')[2]}"


def _model_table(model: str) -> str:
    """The name of a model's table, as TOML writes it."""
    return f"{MODELS}.{model if _BARE_KEY.fullmatch(model) else json.dumps(model, ensure_ascii=False)}"
