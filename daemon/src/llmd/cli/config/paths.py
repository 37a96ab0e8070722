"""``llmd config paths``: the files and folders that llmd uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, daemon_settings


class PathRow(msgspec.Struct, frozen=True):
    """A file or folder; it may not exist."""

    name: str
    path: Path
    exists: bool


COLUMNS = (
    Column[PathRow]("NAME", lambda row: row.name),
    Column[PathRow]("PATH", lambda row: str(row.path)),
    Column[PathRow]("EXISTS", lambda row: "yes" if row.exists else "no"),
)


@click.command("paths")
@listing_options
@CONFIG
def command(config_file: Path | None, **view: Any) -> None:
    """Show the files and folders that llmd uses, and whether each exists."""
    settings = daemon_settings(config_file)
    directories = settings.directories
    places = {
        "config": settings.user_file,
        "system config": directories.system_config,
        "plugins": directories.plugin_choices,
        "models": directories.models,
        "conversations": directories.conversations,
        "state": directories.state,
        "cache": directories.cache,
        "user socket": directories.user_socket,
        "system socket": directories.system_socket,
    }
    rows = [PathRow(name, path, path.exists()) for name, path in places.items()]
    show(View(**view), "paths", rows, COLUMNS)
