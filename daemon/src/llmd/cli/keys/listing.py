"""``llmd keys list``: names and rights, never keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, read_settings
from llmd.config.keys import KeyFile


class KeyRow(msgspec.Struct, frozen=True):
    """One key. ``right`` is ``use`` or ``manage``."""

    name: str
    right: str
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
    """Show the names of keys and what each may do. Keys themselves are not kept."""
    keys = KeyFile(read_settings(config_file).directories.keys).load()
    rows = [KeyRow(key.name, "manage" if key.manages else "use", key.created) for key in keys]
    show(View(**view), "keys", rows, COLUMNS)
