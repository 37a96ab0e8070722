"""``llmd config show``: every setting, its value and its origin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llmd.cli.config.secrets import HIDDEN, shown_value
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, read_settings

if TYPE_CHECKING:
    from llmd.config import Origin


class SettingRow(msgspec.Struct, frozen=True):
    """One setting."""

    name: str
    value: Any
    origin: str
    """``default``, a variable or a file."""
    line: int | None = None
    """The line of the file."""
    default: Any = None
    description: str = ""


def text(row: SettingRow) -> str:
    """Format a value with its unit. What applies if the setting is not set is in parentheses."""
    return HIDDEN if row.value == HIDDEN else _words(row.name, row.value)


def _words(name: str, value: Any) -> str:
    from llmd.config.setting_text import setting_text

    words = setting_text(name, value)
    return f"({words})" if words and value in (None, ()) else words


def _place(row: SettingRow) -> str:
    return row.origin if row.line is None else f"{row.origin}:{row.line}"


COLUMNS = (
    Column[SettingRow]("NAME", lambda row: row.name),
    Column[SettingRow]("VALUE", text),
    Column[SettingRow]("ORIGIN", _place),
)
LONG = (
    *COLUMNS,
    Column[SettingRow]("DEFAULT", lambda row: _words(row.name, row.default)),
    Column[SettingRow]("DESCRIPTION", lambda row: row.description),
)


@click.command("show")
@click.option("--long", "is_long", is_flag=True, help="Also show each setting's default and meaning.")
@listing_options
@CONFIG
def command(config_file: Path | None, *, is_long: bool, **view: Any) -> None:
    """Show every setting, its value and its origin.

    Precedence, highest first: flags, variables (LLMD_NAME), the user's config.toml, the system's config.toml,
    defaults. A value set for one model overrides the value for all models.
    """
    settings = read_settings(config_file)
    rows = [_row(key, None, origin) for key, origin in settings.origins.items()]
    for model, own in settings.models.items():
        rows += [_row(key, model, origin) for key, origin in own.items()]
    chosen = View(**view)
    show(chosen, "settings", rows, LONG if is_long or chosen.columns else COLUMNS)


def _row(key: str, model: str | None, origin: Origin) -> SettingRow:
    from llmd.config.setting_docs import setting_docs
    from llmd.config.setting_values import setting_fields, setting_name

    return SettingRow(
        name=setting_name(key, model),
        value=shown_value(key, origin.value),
        origin=origin.source,
        line=origin.line,
        default=setting_fields()[key].default,
        description=setting_docs()[key.partition(".")[2]],
    )
