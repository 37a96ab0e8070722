"""``llmd plugins info``: everything about one plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llmd.cli.completion.names import plugin_names
from llmd.cli.composition import build_cache, build_choices, build_names
from llmd.cli.examples import examples
from llmd.cli.output import aligned, show_json
from llmd.cli.plugins.choosing import find_plugin
from llmd.cli.settings import JSON

if TYPE_CHECKING:
    from llmd.host.plugin_info import PluginInfo

SHOWN_FILES = 5


@click.command(epilog=examples("llmd plugins info cpu", "llmd plugins info llmd-backend-cpu --json"))
@click.argument("name", shell_complete=plugin_names)
@JSON
def command(*, name: str, as_json: bool) -> None:
    """Show everything about one plugin: where it is from, what it provides, its state, how long it takes.

    NAME is a plugin or a distribution that `llmd plugins list` shows. A plugin that has not been probed is
    probed now, in a child process.
    """
    from llmd.host.plugin_info import plugin_info  # imports numpy, which a shell must not wait for

    plugins = build_names()
    info = plugin_info(find_plugin(name, plugins), plugins, build_cache(), build_choices().load().disabled)
    if as_json:
        show_json({"plugin": info})
    else:
        click.echo(aligned(lines_of(info)))


def lines_of(info: PluginInfo) -> list[list[str]]:
    """Return the details as titles and values, without empty ones."""
    rows = [
        ("name", info.name),
        ("distribution", f"{info.distribution} {info.version}"),
        ("summary", info.summary),
        ("homepage", info.homepage),
        ("licence", info.licence),
        ("state", info.state),
        ("reason", info.reason),
        ("fix", info.fix),
        *((f"provides {kind}", ", ".join(names)) for kind, names in info.provides.items()),
        ("contract", str(info.contract) if info.contract else "not stated"),
        ("entry points", ", ".join(info.entry_points)),
        ("requires", ", ".join(info.requires)),
        ("location", info.location),
        ("files", shown_files(info.files)),
        ("import", seconds(info.import_s)),
        ("probe", seconds(info.probe_s)),
    ]
    return [[title, value] for title, value in rows if value]


def shown_files(files: tuple[str, ...]) -> str:
    """Format the number of files and the first ones."""
    first = ", ".join(files[:SHOWN_FILES])
    return f"{len(files)}: {first}{', …' if len(files) > SHOWN_FILES else ''}" if files else "not listed"


def seconds(value: float) -> str:
    """Format a measured time; empty if it was not measured."""
    return f"{value:.2f} s" if value else ""
