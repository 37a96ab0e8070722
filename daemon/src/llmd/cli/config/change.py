"""The options, names and values that the commands share which change a ``config.toml``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs

from llmd.api.errors import ConfigError
from llmd.cli.completion.names import model_names
from llmd.cli.settings import CONFIG

if TYPE_CHECKING:
    from llmd.config import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
COMMAND_LINE = "the command line"

MODEL = click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=model_names,
    help='Use the table of this model: [models."MODEL"].',
)
SYSTEM = click.option("--system", is_flag=True, help="Use the system's file instead of yours.")


def file_options(command: Decorated) -> Decorated:
    """Add the options that say which file a command changes."""
    return SYSTEM(CONFIG(command))


def chosen_file(config_file: Path | None, *, system: bool) -> Path:
    """Return the file to change: the named one, the system's or the user's."""
    settings = lenient_settings(None)
    if system and config_file:
        raise click.UsageError("--system and --config name two files")
    if system:
        return settings.directories.system_config
    return config_file or settings.user_file


def lenient_settings(config_file: Path | None) -> Settings:
    """Return the settings whose values are right; errors are left to whoever needs the others."""
    from llmd.config import load_settings

    return load_settings(file=config_file, report=lambda _error: None)


def setting_key(name: str) -> str:
    """Return the key of a setting, such as ``engine.slots``, by that or as ``slots``, flag or variable.

    Raises:
        ConfigError: there is none; the hint has the nearest name.
    """
    from llmd.config.setting_values import PREFIX, keys_by_name, known_key

    keys = keys_by_name()
    bare = name.removeprefix("--").replace("-", "_")
    if bare.startswith(PREFIX):
        bare = bare.removeprefix(PREFIX).lower()
    return known_key(bare, {**keys, **{key: key for key in keys.values()}}, COMMAND_LINE)


def toml_path(key: str, model: str | None) -> tuple[str, ...]:
    """Return where a setting is in the file: ``engine``, ``slots`` or ``models``, the model, ``slots``."""
    from llmd.config.setting_values import MODELS

    section, _, name = key.partition(".")
    return (section, name) if model is None else (MODELS, model, name)


def typed_value(key: str, texts: Sequence[str]) -> Any:
    """Return the value to write for typed texts. Sizes and durations keep the unit that was typed.

    Raises:
        ConfigError: the setting cannot have this value.
        UsageError: there are several values for a setting that is no list.
    """
    from msgspec import inspect

    from llmd.config.setting_values import Origin, SettingValue, setting_fields
    from llmd.config.sources import converted
    from llmd.config.values import is_byte_size, is_duration

    kind = setting_fields()[key].type
    is_list = isinstance(kind, inspect.VarTupleType)
    if len(texts) > 1 and not is_list:
        raise click.UsageError(f"{key} has one value, not {len(texts)}")
    text = ",".join(texts)
    try:
        value = converted(SettingValue(key, Origin(text, COMMAND_LINE))).value
    except ConfigError as error:
        error.hint = "nothing was changed; `llmd config show --long` says what each setting means"
        raise
    if is_list:
        return list(value)
    if is_byte_size(kind) or is_duration(kind):
        return int(text) if text.strip().lstrip("+-").isdecimal() else text
    return value


def told_of_absent(model: str | None) -> None:
    """Warn if a model that gets settings is not on this machine: it may be pulled later."""
    from llmd.cli.composition import build_store
    from llmd.cli.config.absent_models import absent_models

    if model is not None:
        for absent in absent_models({model: ()}, build_store(lenient_settings(None).directories)):
            click.echo(f"llmd: warning: {absent.message}; {absent.hint}", err=True)


def check_has_effect(key: str, model: str) -> None:
    """Refuse a setting of a derived model that its base determines.

    Raises:
        ConfigError: the setting would have no effect.
    """
    from llmd.cli.composition import build_store
    from llmd.config import Origin
    from llmd.server.models.model_settings import settings_without_effect

    settings = lenient_settings(None)
    typed = structs.replace(settings, models={model: {key: Origin(None, COMMAND_LINE)}})
    for error in settings_without_effect(typed, build_store(settings.directories).derived):
        raise error


def told_of_stronger(key: str, model: str | None, file: Path, config_file: Path | None) -> None:
    """Warn if a variable or another file also sets the setting, so that a change has no effect."""
    settings = lenient_settings(config_file)
    origins = settings.origins if model is None else settings.models.get(model, {})
    origin = origins.get(key)
    if origin is not None and origin.source not in {str(file), "default"}:
        click.echo(f"llmd: warning: {origin.place} sets {key} too, and overrides {file}", err=True)
