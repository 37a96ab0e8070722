"""``llmd config check``: every error of the configuration."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llmd.api.errors import ConfigError
from llmd.cli.composition import build_store
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

    Exits with 8 if there is an error.
    """
    errors, checked = errors_of_file(file) if file else errors_of_sources()
    if as_json:
        show_json(
            {"errors": [{"message": one.message, "hint": one.hint, "line": one.line} for one in errors]}
        )
    else:
        for error in errors:
            click.echo(failure_text(error))
        if not errors:
            click.echo(f"no errors in {checked}")
    ctx.exit(EXIT_CHECK_FAILED if errors else 0)


def errors_of_file(file: Path) -> tuple[list[ConfigError], str]:
    """Return the errors of one file, and its name.

    Raises:
        ConfigError: it cannot be read.
    """
    from llmd.config.config_change import errors_of_text, read_text
    from llmd.config.config_file import values_of_text
    from llmd.config.path_settings import missing_file

    text, mode = read_text(file)
    if mode is None:
        raise ConfigError(f"{file} does not exist", hint="`llmd config paths` shows the files that llmd uses")
    errors = errors_of_text(file, text)
    given = values_of_text(file, text, lambda _error: None)  # its errors are among those above
    missing = (missing_file(one.key, one.origin) for one in given)
    return [*errors, *filter(None, missing)], str(file)


def errors_of_sources() -> tuple[list[ConfigError], str]:
    """Return the errors of all files and variables, and what was read."""
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
    return errors + unknown, ", ".join([*map(str, files), *variables]) or "the defaults: nothing is set"
