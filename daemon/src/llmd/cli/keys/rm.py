"""``llmd keys rm``: revokes a key."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.settings import CONFIG
from llmd.cli.this_machine import local_settings
from llmd.config.keys import KeyFile


@click.command("rm")
@click.argument("name")
@CONFIG
def command(*, name: str, config_file: Path | None) -> None:
    """Revoke a key. A running daemon refuses it at once; its running requests continue."""
    settings = local_settings(config_file, "keys")
    KeyFile(settings.directories.keys).remove(name)
