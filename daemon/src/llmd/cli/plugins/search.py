"""``llmd plugins search``: searches the list of known plugins."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from llmd.cli.composition import build_names
from llmd.cli.examples import examples
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.plugins.notices import say
from llmd.host.names import canonical
from llmd.host.plugin_index import IndexEntry, read_index, search


class FoundPlugin(msgspec.Struct, frozen=True):
    """One row."""

    name: str
    provides: tuple[str, ...]
    summary: str
    installed: str
    """Installed version; empty: none."""
    install: str
    added: str
    """RFC 3339 date."""
    source: str


COLUMNS = (
    Column[FoundPlugin]("NAME", lambda row: row.name),
    Column[FoundPlugin]("PROVIDES", lambda row: " ".join(row.provides)),
    Column[FoundPlugin]("INSTALLED", lambda row: row.installed),
    Column[FoundPlugin]("ADDED", lambda row: row.added),
    Column[FoundPlugin]("SUMMARY", lambda row: row.summary),
)


@click.command(epilog=examples("llmd plugins search", "llmd plugins search backend"))
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option("--index", default="", metavar="FILE|URL", help="Search another list instead of llmd's own.")
@listing_options
def command(*, words: tuple[str, ...], index: str, **view: Any) -> None:
    """Search the list of known plugins; without a WORD, show all of it.

    The list comes with llmd. Each entry has the day on which the plugin was tried out. An entry must contain
    every WORD. `llmd plugins install NAME` installs one.
    """
    versions = {canonical(plugin.distribution): plugin.version for plugin in build_names()}
    rows = [
        _row(entry, versions.get(canonical(entry.name), "")) for entry in search(read_index(index), words)
    ]
    show(View(**view), "plugins", rows, COLUMNS)
    if not rows:
        say(
            ["no known plugin matches; `llmd plugins install NAME` also installs one that is not in the list"]
        )


def _row(entry: IndexEntry, installed: str) -> FoundPlugin:
    return FoundPlugin(
        name=entry.name,
        provides=entry.provides,
        summary=entry.summary,
        installed=installed,
        install=entry.install,
        added=entry.added.isoformat(),
        source=entry.source,
    )
