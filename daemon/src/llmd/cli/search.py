"""``llmd search``: finds models to download, in llmd's list of short names and on the hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from llmd.api.errors import HubError, LlmdError
from llmd.cli.examples import examples
from llmd.cli.failures import EXIT_CHECK_FAILED
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, HUB, read_settings
from llmd.registry.short_names import ShortName, short_names


class Row(msgspec.Struct, frozen=True):
    """A model that can be downloaded."""

    name: str
    """What to type after ``llmd pull``."""
    repo: str
    about: str = ""
    downloads: int | None = None
    """Downloads in the last 30 days; None: not known."""


COLUMNS = (
    Column[Row]("NAME", lambda row: row.name),
    Column[Row]("REPOSITORY", lambda row: row.repo),
    Column[Row](
        "DOWNLOADS",
        lambda row: "" if row.downloads is None else f"{row.downloads:,}",
        lambda row: row.downloads or 0,
    ),
    Column[Row]("ABOUT", lambda row: row.about),
)


@click.command(epilog=examples("llmd search", "llmd search qwen3", "llmd search qwen3 --limit 50 --json"))
@click.argument("text", required=False, default="")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most results of the hub."
)
@click.option("--offline", is_flag=True, help="Search only the list of short names that comes with llmd.")
@click.option("--check", is_flag=True, help="Look up each short name on the hub; exit with 8 if one is gone.")
@listing_options
@HUB
@CONFIG
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    text: str,
    limit: int,
    offline: bool,
    check: bool,
    hub: str | None,
    config_file: Path | None,
    **view: Any,
) -> None:
    """Find models to download.

    Without TEXT, it lists the short names that come with llmd, such as qwen3:0.6b. With TEXT, it lists those
    that match, then repositories of the hub, the most downloaded first. llmd may not support all of them;
    `llmd pull` says so before it downloads weights.
    """
    if check and offline:
        raise click.UsageError("--check needs the hub: leave out --offline")
    endpoint = read_settings(config_file, hub=hub).config.registry.hub
    entries = [entry for entry in short_names().values() if matches(entry, text)]
    if check:
        ctx.exit(EXIT_CHECK_FAILED if _report_gone(entries, endpoint) else 0)
    rows = [Row(entry.name, entry.repo, entry.about) for entry in entries]
    if text and not offline:
        rows += _from_hub(text, limit, endpoint, has_others=bool(rows))
    show(View(**view), "models", rows, COLUMNS)


def matches(entry: ShortName, text: str) -> bool:
    """Return whether every word of a text occurs in an entry, in any case."""
    searched = f"{entry.name} {entry.repo} {entry.about}".lower()
    return all(word in searched for word in text.lower().split())


def _from_hub(text: str, limit: int, endpoint: str | None, *, has_others: bool) -> Iterator[Row]:
    """Yield results of the hub. If it fails, say so; raise the error only if there are no other results."""
    from llmd.registry.hub import Hub

    try:
        for found in Hub(endpoint).search(text, limit):
            terms = "its authors' terms must be accepted first" if found.gated else ""
            yield Row(found.repo, found.repo, terms, found.downloads)
    except HubError as error:
        if not has_others:
            raise
        click.echo(f"only llmd's own list was searched: {error}", err=True)


def _report_gone(entries: list[ShortName], endpoint: str | None) -> bool:
    """Look up each repository and print the result; return whether one cannot be pulled."""
    from llmd.registry.hub import Hub
    from llmd.registry.names import HubName
    from llmd.registry.selection import small_files

    hub, gone = Hub(endpoint), False
    for repo in dict.fromkeys(entry.repo for entry in entries):
        try:
            files = [file.path for file in hub.list(HubName(repo)).files]
            reason = "" if "config.json" in small_files(files) else "it has no config.json"
        except LlmdError as error:
            reason = str(error)
        gone = gone or bool(reason)
        click.echo(f"✗ {repo}: {reason}" if reason else f"✓ {repo}")
    return gone
