"""Builds the configuration from its sources and records the origin of each value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect, structs

from llmd.api.errors import ConfigError
from llmd.config.addresses import parse_address
from llmd.config.config_file import Report, values_of_file
from llmd.config.directories import Directories
from llmd.config.schema import Config
from llmd.config.setting_values import (
    CONFIG_FILE_VARIABLE,
    Origin,
    SettingValue,
    UnknownVariable,
    keys_by_name,
    known_key,
    setting_fields,
    setting_name,
    struct_fields,
    unknown_variables,
    values_of_environment,
)
from llmd.config.values import decode, expected_instead

ADDRESSES = frozenset({"server.addr", "client.host"})


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

    def is_explicit(self, key: str, name: str) -> bool:
        """Whether a setting was set for this one model, or with a flag: then it is no default that may not
        apply.
        """
        common = self.origins[key]
        origin = self.models.get(name, {}).get(key, common)
        return origin != common or origin.source.startswith("--")


def raise_error(error: ConfigError) -> None:
    """Raise an error: the report of those who need all values to be right."""
    raise error


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directories: Directories | None = None,
    file: Path | None = None,
    report: Report = raise_error,
) -> Settings:
    """Read every source. ``flags`` has the typed flags by setting name; None means not typed.

    ``file`` (else ``LLMD_CONFIG``) replaces the user's ``config.toml`` and must exist. A ``report`` that does
    not raise gets every error; the settings are then those of the values that are right.

    Raises:
        ConfigError: a file cannot be read, a setting in a file or flag is unknown, or a value is invalid.
    """
    environ = os.environ if environ is None else environ
    directories = directories or Directories.of(environ)
    named = file or (Path(environ[CONFIG_FILE_VARIABLE]) if environ.get(CONFIG_FILE_VARIABLE) else None)
    values = _defaults()
    models: dict[str, dict[str, Origin]] = {}
    for given in _given_values(flags or {}, environ, directories, named, report):
        try:
            origin = converted(given)
        except ConfigError as error:
            report(error)
            continue
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


def _given_values(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    directories: Directories,
    named: Path | None,
    report: Report,
) -> Iterator[SettingValue]:
    """Yield every given value, weakest source first. ``named`` replaces the user's file."""
    yield from values_of_file(directories.system_config, report, required=False)
    yield from values_of_file(named or directories.user_config, report, required=named is not None)
    yield from values_of_environment(environ)
    keys = keys_by_name()
    for name, value in flags.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            yield SettingValue(known_key(name, keys, flag), Origin(value, flag))


def converted(given: SettingValue) -> Origin:
    """Return the origin of a value with the value in the schema's type.

    Raises:
        ConfigError: the value has another form, or is out of range.
    """
    field = setting_fields()[given.key]
    section, _, name = given.key.partition(".")
    value = given.origin.value
    try:
        part = decode(_owner(type(getattr(Config(), section)), name), name, field.type, value)
    except (msgspec.ValidationError, ValueError) as error:
        called = setting_name(given.key, given.model)
        refused = ConfigError(
            f"{called} from {given.origin.place} is {value!r}, expected {expected_instead(field.type, value)}",
            hint="correct it there, or remove it to use the default"
            + (f": `{removal}`" if (removal := given.origin.removal(given.key, given.model)) else ""),
        )
        raise _placed(refused, given) from error
    origin = msgspec.structs.replace(given.origin, value=getattr(part, name))
    if given.key in ADDRESSES:
        try:
            _check_addresses(given.key, origin)
        except ConfigError as refused:
            raise _placed(refused, given) from None
    return origin


def _check_addresses(key: str, origin: Origin) -> None:
    for text in (origin.value,) if isinstance(origin.value, str) else origin.value or ():
        parse_address(text, f"{key} from {origin.place}")


def _placed(error: ConfigError, given: SettingValue) -> ConfigError:
    """Return an error with the setting that it is about, and the place in a file that sets it."""
    error.setting = given.key.partition(".")[2]
    return given.origin.placed(error)


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
