"""``llmd config show``: every setting, its value and its origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, read_settings


class SettingRow(msgspec.Struct, frozen=True):
    """One setting."""

    name: str
    value: Any
    origin: str
    """``default``, a variable or a file."""


def text(row: SettingRow) -> str:
    """Format a value with its unit. What applies if the setting is not set is in parentheses."""
    from llmd.config.setting_text import setting_text

    if row.value == HIDDEN:
        return HIDDEN
    words = setting_text(row.name, row.value)
    return f"({words})" if words and row.value in (None, ()) else words


# Values are hidden: people paste the output of this command into bug reports.
SECRETS = frozenset({"client.api_key"})
HIDDEN = "(hidden)"

COLUMNS = (
    Column[SettingRow]("NAME", lambda row: row.name),
    Column[SettingRow]("VALUE", text),
    Column[SettingRow]("ORIGIN", lambda row: row.origin),
)


@click.command("show")
@listing_options
@CONFIG
def command(config_file: Path | None, **view: Any) -> None:
    """Show every setting, its value and its origin.

    Precedence, highest first: flags, variables (LLMD_NAME), the user's config.toml, the system's config.toml,
    defaults. A value set for one model overrides the value for all models.
    """
    from llmd.config import setting_name

    settings = read_settings(config_file)
    origins = {
        **settings.origins,
        **{
            setting_name(key, model): origin
            for model, own in settings.models.items()
            for key, origin in own.items()
        },
    }
    rows = [
        SettingRow(name, HIDDEN if name in SECRETS and origin.value else origin.value, origin.source)
        for name, origin in origins.items()
    ]
    show(View(**view), "settings", rows, COLUMNS)
