"""Builds the configuration from its sources and records the origin of each value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect, structs

from llmd.api.errors import ConfigError
from llmd.config.directories import Directories
from llmd.config.schema import Config
from llmd.config.setting_values import (
    CONFIG_FILE_VARIABLE,
    Origin,
    SettingValue,
    UnknownVariable,
    setting_fields,
    setting_name,
    setting_values,
    struct_fields,
    unknown_variables,
)
from llmd.config.values import decode, expected_form


class Settings(Struct, frozen=True):
    """The configuration with the folders and origins it was built from."""

    config: Config
    directories: Directories
    origins: Mapping[str, Origin]
    """Every value and its origin by ``section.name``."""
    user_file: Path
    """The user's ``config.toml``, which may not exist, or the file named in its place."""
    models: Mapping[str, Mapping[str, Origin]] = {}
    """Values for single models, by model name and ``section.name``."""
    unknown: tuple[UnknownVariable, ...] = ()
    """Variables that look like settings but are not."""

    def of_model(self, name: str) -> Config:
        """Return the configuration for one model."""
        return _build({**self.origins, **self.models.get(name, {})})


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directories: Directories | None = None,
    file: Path | None = None,
) -> Settings:
    """Read every source. ``flags`` has the typed flags by setting name; None means not typed.

    ``file`` (else ``LLMD_CONFIG``) replaces the user's ``config.toml`` and must exist.

    Raises:
        ConfigError: a file cannot be read, a setting in a file or flag is unknown, or a value is invalid.
    """
    environ = os.environ if environ is None else environ
    directories = directories or Directories.of(environ)
    named = file or (Path(environ[CONFIG_FILE_VARIABLE]) if environ.get(CONFIG_FILE_VARIABLE) else None)
    values = _defaults()
    models: dict[str, dict[str, Origin]] = {}
    for given in setting_values(flags or {}, environ, directories, named):
        origin = Origin(_convert(given), given.origin.source)
        if given.model is not None:
            models.setdefault(given.model, {})[given.key] = origin
            continue
        values[given.key] = origin
        for own in models.values():  # set for one model, but by a weaker source
            if given.key in own:
                own[given.key] = origin
    return Settings(
        _build(values),
        directories,
        values,
        named or directories.user_config,
        models,
        tuple(unknown_variables(environ)),
    )


def with_origins(settings: Settings, origins: Mapping[str, Origin]) -> Settings:
    """Return the settings with other values for all models."""
    return structs.replace(settings, origins=origins, config=_build(origins))


def _defaults() -> dict[str, Origin]:
    return {key: Origin(field.default, "default") for key, field in setting_fields().items()}


def _convert(given: SettingValue) -> Any:
    field = setting_fields()[given.key]
    section, _, name = given.key.partition(".")
    value, source = given.origin.value, given.origin.source
    try:
        part = decode(_owner(type(getattr(Config(), section)), name), name, field.type, value)
    except (msgspec.ValidationError, ValueError) as error:
        called = setting_name(given.key, given.model)
        raise ConfigError(
            f"{called} from {source} is {value!r}, expected {expected_form(field.type)}",
            hint="correct it there, or remove it to use the default",
        ) from error
    return getattr(part, name)


def _owner(section: type[Struct], name: str) -> type[Struct]:
    """The section, or the part of it, that has a setting."""
    if name in section.__struct_fields__:
        return section
    parts = [field.type.cls for field in struct_fields(section) if isinstance(field.type, inspect.StructType)]
    return next(part for part in parts if name in part.__struct_fields__)


def _build(values: Mapping[str, Origin]) -> Config:
    sections: dict[str, dict[str, Any]] = {}
    for key, origin in values.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = origin.value
    return Config(
        **{section: _filled(type(getattr(Config(), section)), fields) for section, fields in sections.items()}
    )


def _filled(kind: type[Struct], values: Mapping[str, Any]) -> Any:
    """A section or a part of one, with its settings among ``values``."""
    parts = {
        field.name: _filled(field.type.cls, values)
        for field in struct_fields(kind)
        if isinstance(field.type, inspect.StructType)
    }
    return kind(**parts, **{name: values[name] for name in kind.__struct_fields__ if name in values})
