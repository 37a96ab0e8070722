"""``llmd keys rm``: revokes a key."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.settings import CONFIG, daemon_settings
from llmd.config.keys import KeyFile


@click.command("rm")
@click.argument("name")
@CONFIG
def command(*, name: str, config_file: Path | None) -> None:
    """Revoke a key. A running daemon refuses it at once; its running requests continue."""
    settings = daemon_settings(config_file)
    KeyFile(settings.directories.keys).remove(name)
