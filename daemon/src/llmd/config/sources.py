"""Builds the configuration from its sources and remembers where each value came from."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect

from llmd.api.errors import ConfigError
from llmd.config.directories import Directories
from llmd.config.schema import Config
from llmd.config.values import decode, expected_form

PREFIX = "LLMD_"
CONFIG_FILE_VARIABLE = "LLMD_CONFIG"
TEST_PREFIX = "LLMD_TEST_"


class Origin(Struct, frozen=True):
    """A value and where it came from: ``default``, ``--flag``, a variable or a file."""

    value: Any
    source: str


class Settings(Struct, frozen=True):
    """The configuration, the folders it belongs to, and each value's origin by ``section.name``.

    ``user_file`` is the user's ``config.toml``, which may be missing, or the file that was named in its place.
    """

    config: Config
    directories: Directories
    origins: Mapping[str, Origin]
    user_file: Path


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directories: Directories | None = None,
    file: Path | None = None,
) -> Settings:
    """Read every source. ``flags`` holds what was typed, by setting name; None in it means not typed.

    ``file`` (else ``LLMD_CONFIG``) stands in for the user's ``config.toml`` and must exist.

    Raises:
        ConfigError: a file cannot be read, or a setting is unknown or has a value that cannot be used.
    """
    environ = os.environ if environ is None else environ
    directories = directories or Directories.of(environ)
    named = file or (Path(environ[CONFIG_FILE_VARIABLE]) if environ.get(CONFIG_FILE_VARIABLE) else None)
    values = _defaults()
    for key, origin in _given(flags or {}, environ, directories, named):
        values[key] = Origin(_convert(key, origin), origin.source)
    return Settings(_build(values), directories, values, named or directories.user_config)


def _defaults() -> dict[str, Origin]:
    return {key: Origin(field.default, "default") for key, field in _fields().items()}


def _fields() -> dict[str, inspect.Field]:
    """Each setting's type and default by ``section.name``."""
    sections = inspect.type_info(Config)
    assert isinstance(sections, inspect.StructType)
    return {
        f"{section.name}.{field.name}": field
        for section in sections.fields
        if isinstance(section.type, inspect.StructType)
        for field in section.type.fields
    }


def _given(
    flags: Mapping[str, Any], environ: Mapping[str, str], directories: Directories, named: Path | None
) -> Iterator[tuple[str, Origin]]:
    """Every value that was given, weakest source first."""
    yield from _from_file(directories.system_config, required=False)
    yield from _from_file(named or directories.user_config, required=named is not None)
    yield from _from_environment(environ)
    keys = _keys_by_name()
    for name, value in flags.items():
        if value is not None:
            yield (
                _known(name, keys, f"--{name.replace('_', '-')}"),
                Origin(value, f"--{name.replace('_', '-')}"),
            )


def _keys_by_name() -> dict[str, str]:
    return {key.partition(".")[2]: key for key in _fields()}


def _from_file(path: Path, *, required: bool) -> Iterator[tuple[str, Origin]]:
    fields = _fields()
    keys = {key: key for key in fields} | {section: section for section in Config.__struct_fields__}
    for section, table in _read_toml(path, required=required).items():
        _known(section, keys, str(path))
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {section} must be a table", hint=f"begin it with [{section}]")
        for name, value in table.items():
            yield _known(f"{section}.{name}", keys, str(path)), Origin(value, str(path))


def _read_toml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError) as error:
        if required:
            raise ConfigError(f"{path} does not exist", hint="check --config and LLMD_CONFIG") from error
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint="mend the file or move it away") from error


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Origin]]:
    keys = {f"{PREFIX}{name.upper()}": key for name, key in _keys_by_name().items()}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_FILE_VARIABLE or not text:
            continue
        if not variable.startswith(TEST_PREFIX):
            yield _known(variable, keys, "the environment"), Origin(text, variable)


def _known(name: str, keys: Mapping[str, str], source: str) -> str:
    if name in keys:
        return keys[name]
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
    hint = f"the nearest name is {near[0]}" if near else "`llmd config show` lists every setting"
    raise ConfigError(f"unknown setting {name!r} in {source}", hint=hint)


def _convert(key: str, origin: Origin) -> Any:
    field = _fields()[key]
    section, _, name = key.partition(".")
    try:
        part = decode(_section_type(section), name, field.type, origin.value)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigError(
            f"{key} from {origin.source} is {origin.value!r}, expected {expected_form(field.type)}",
            hint="correct it there, or leave it out for the default",
        ) from error
    return getattr(part, name)


def _section_type(section: str) -> type[Struct]:
    return type(getattr(Config(), section))


def _build(values: Mapping[str, Origin]) -> Config:
    sections: dict[str, dict[str, Any]] = {}
    for key, origin in values.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = origin.value
    return msgspec.convert(
        {section: _section_type(section)(**fields) for section, fields in sections.items()}, Config
    )
