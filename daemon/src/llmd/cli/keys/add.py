"""``llmd keys add``: a new key, shown once."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.examples import examples
from llmd.cli.keys.reload import tell_daemon
from llmd.cli.output import show_json
from llmd.cli.settings import CONFIG, JSON, read_settings
from llmd.config.keys import KeyFile


@click.command("add", epilog=examples("llmd keys add laptop", "llmd keys add operator --manage"))
@click.argument("name")
@click.option("--manage", is_flag=True, help="Let it load, pull, remove and stop, too.")
@JSON
@CONFIG
def command(*, name: str, manage: bool, as_json: bool, config_file: Path | None) -> None:
    """Make an API key and print it.

    Only its digest is kept: what is printed now cannot be shown again. A daemon that runs takes it at once.
    """
    settings = read_settings(config_file)
    key = KeyFile(settings.directories.keys).add(name, manages=manage)
    if as_json:
        show_json({"name": name, "key": key})
    else:
        click.echo(key)
    tell_daemon(settings)
