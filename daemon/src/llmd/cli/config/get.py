"""``llmd config get``: one setting's value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from llmd.cli.completion.names import setting_names
from llmd.cli.config.change import MODEL, setting_key
from llmd.cli.config.secrets import shown_value
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import CONFIG, JSON, read_settings


@click.command(
    "get", epilog=examples("llmd config get max_ctx", "llmd config get slots --model guide --json")
)
@click.argument("name", shell_complete=setting_names)
@MODEL
@JSON
@CONFIG
def command(*, name: str, model: str | None, as_json: bool, config_file: Path | None) -> None:
    """Print the value of NAME, and on standard error its origin.

    A list is printed with one element per line; a setting without a value as an empty line.
    """
    key = setting_key(name)
    settings = read_settings(config_file)
    own = settings.models.get(model, {}) if model else {}
    origin = own.get(key) or settings.origins[key]
    value = shown_value(key, origin.value)
    if as_json:
        show_json({"name": key, "value": value, "origin": origin.source, "line": origin.line})
        return
    click.echo(plain(value))
    click.echo(f"from {origin.place}", err=True)


def plain(value: Any) -> str:
    """Write a value for scripts, in the form that `config set` takes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
