"""``llmd config check``: every error of the configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.cli.composition import build_store
from llmd.cli.config.absent_models import absent_loads, absent_models, models_of
from llmd.cli.examples import examples
from llmd.cli.failures import EXIT_CHECK_FAILED, failure_text
from llmd.cli.output import show_json
from llmd.cli.settings import JSON


@click.command("check", epilog=examples("llmd config check", "llmd config check new.toml"))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@JSON
@click.pass_context
def command(ctx: click.Context, /, *, file: Path | None, as_json: bool) -> None:
    """Check FILE, or the files and variables that llmd uses; print every error with its line.

    Exits with 8 if there is an error. A name of a model that is not on this machine is only a warning.
    """
    found = findings_of_file(file) if file else findings_of_sources()
    if as_json:
        show_json({"errors": _rows(found.errors), "warnings": _rows(found.warnings)})
    else:
        for error in found.errors:
            click.echo(failure_text(error))
        for warning in found.warnings:
            click.echo(f"warning: {failure_text(warning)}")
        if not found.errors:
            click.echo(f"no errors in {found.checked}")
    ctx.exit(EXIT_CHECK_FAILED if found.errors else 0)


class Findings(Struct, frozen=True):
    """What is wrong with settings."""

    errors: list[ConfigError]
    warnings: list[ConfigError]
    checked: str
    """What was read."""


def _rows(errors: list[ConfigError]) -> list[dict[str, Any]]:
    return [{"message": one.message, "hint": one.hint, "line": one.line} for one in errors]


def findings_of_file(file: Path) -> Findings:
    """Return what is wrong with one file.

    Raises:
        ConfigError: it cannot be read.
    """
    from llmd.config import Directories
    from llmd.config.config_change import errors_of_text, read_text
    from llmd.config.config_file import values_of_text
    from llmd.config.path_settings import missing_file

    text, mode = read_text(file)
    if mode is None:
        raise ConfigError(f"{file} does not exist", hint="`llmd config paths` shows the files that llmd uses")
    errors = errors_of_text(file, text)
    given = list(values_of_text(file, text, lambda _error: None))  # its errors are among those above
    missing = (missing_file(one.key, one.origin) for one in given)
    store = build_store(Directories.of(os.environ))
    origins = {one.key: one.origin for one in given if one.model is None}
    warnings = [*absent_models(models_of(given), store), *absent_loads(origins, store)]
    return Findings([*errors, *filter(None, missing)], warnings, str(file))


def findings_of_sources() -> Findings:
    """Return what is wrong with all files and variables."""
    from llmd.config import load_settings
    from llmd.config.path_settings import missing_file
    from llmd.server.models.model_settings import settings_without_effect

    errors: list[ConfigError] = []
    settings = load_settings(report=errors.append)
    errors += filter(None, (missing_file(key, origin) for key, origin in settings.origins.items()))
    files = [path for path in (settings.directories.system_config, settings.user_file) if path.exists()]
    store = build_store(settings.directories)
    errors += settings_without_effect(settings, store.derived)
    unknown = [ConfigError(f"{one.name} is not a setting", hint=one.hint) for one in settings.unknown]
    variables = [name for name in os.environ if name.startswith("LLMD_")]
    models = {name: own.values() for name, own in settings.models.items()}
    return Findings(
        errors + unknown,
        [*absent_models(models, store), *absent_loads(settings.origins, store)],
        ", ".join([*map(str, files), *variables]) or "the defaults: nothing is set",
    )
