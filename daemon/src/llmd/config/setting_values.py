"""The settings by name, the values given for them with their origins, and what unknown names may mean."""

from __future__ import annotations

import difflib
import functools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, inspect

from llmd.api.errors import ConfigError
from llmd.config.other_tools import answer_to_setting
from llmd.config.schema import Config
from llmd.config.toml_statements import dotted

PREFIX = "LLMD_"
CONFIG_FILE_VARIABLE = "LLMD_CONFIG"
TEST_PREFIX = "LLMD_TEST_"
MODELS = "models"


class Origin(Struct, frozen=True):
    """A value and its origin: ``default``, ``--flag``, a variable or a file."""

    value: Any
    source: str
    line: int | None = None
    """The line of the file."""

    @property
    def place(self) -> str:
        """The origin for messages, with the line: ``config.toml:3``."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def placed(self, error: ConfigError) -> ConfigError:
        """Return an error about this value with its place in a file."""
        if self.line is not None:
            error.file, error.line = Path(self.source), self.line
        return error

    def removal(self, key: str, model: str | None = None) -> str:
        """Return the shell command that removes a setting from a file or variable; else nothing."""
        if self.line is not None:
            own = [] if model is None else ["--model", model]
            return shlex.join(["llmd", "config", "unset", key, *own, "--config", self.source])
        return f"unset {self.source}" if self.source.startswith(PREFIX) else ""


class SettingValue(Struct, frozen=True):
    """A raw value given for ``key``, for one model or for all."""

    key: str
    origin: Origin
    model: str | None = None


class UnknownVariable(Struct, frozen=True):
    """A variable that looks like a setting but is not one; ``hint`` suggests what was meant."""

    name: str
    hint: str


def keys_by_name() -> dict[str, str]:
    """Return the setting keys, such as ``engine.slots``, by name: ``slots``."""
    return {key.partition(".")[2]: key for key in setting_fields()}


def values_of_environment(environ: Mapping[str, str]) -> Iterator[SettingValue]:
    """Yield the value of each variable that is a setting."""
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
    return {f"{PREFIX}{name.upper()}": key for name, key in keys_by_name().items()}


def known_key(name: str, keys: Mapping[str, str], place: str) -> str:
    """Return the key of a name.

    Raises:
        ConfigError: there is no such setting; the hint suggests one.
    """
    if name in keys:
        return keys[name]
    raise ConfigError(f"unknown setting {name!r} in {place}", hint=_hint(name, keys))


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
    return f"{model_table(model)}.{key.partition('.')[2]}"


def model_table(model: str) -> str:
    """Return the name of a model's table in TOML."""
    return dotted((MODELS, model))
