"""``llmd keys list``: names and rights of the keys, never the keys themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG
from llmd.cli.this_machine import local_settings
from llmd.config.keys import KeyFile


class KeyRow(msgspec.Struct, frozen=True):
    """One key."""

    name: str
    right: str
    """``use`` or ``manage``."""
    created: str


COLUMNS = (
    Column[KeyRow]("NAME", lambda row: row.name),
    Column[KeyRow]("RIGHT", lambda row: row.right),
    Column[KeyRow]("CREATED", lambda row: row.created),
)


@click.command("list")
@listing_options
@CONFIG
def command(config_file: Path | None, **view: Any) -> None:
    """List API keys and their rights. The keys themselves are not stored."""
    keys = KeyFile(local_settings(config_file, "keys").directories.keys).load()
    rows = [KeyRow(key.name, "manage" if key.manages else "use", key.created) for key in keys]
    show(View(**view), "keys", rows, COLUMNS)
