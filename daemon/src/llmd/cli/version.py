"""``llmd version``: versions of the client, the daemon, the plugin API and the plugins."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import click

from llmd.api.errors import DaemonUnreachableError
from llmd.api.plugins import API_VERSION
from llmd.cli.composition import build_names
from llmd.cli.connection import connect
from llmd.cli.output import show_json
from llmd.cli.settings import JSON, client_options


@click.command()
@JSON
@client_options
def command(*, as_json: bool, host: str | None, timeout_s: float | None, config_file: Path | None) -> None:
    """Print the versions of this program and of a running daemon; with --json also those of the plugins."""
    mine = version("llmd-daemon")
    daemon = daemon_version(host, timeout_s, config_file)
    if as_json:
        plugins = [
            {"name": name.name, "distribution": name.distribution, "version": name.version}
            for name in build_names()
        ]
        show_json({"client": mine, "daemon": daemon, "plugin_api": API_VERSION, "plugins": plugins})
    else:
        click.echo(f"llmd {mine}")
        click.echo(f"daemon {daemon}" if daemon else "no daemon is running")
    if daemon not in {None, mine}:
        click.echo(
            f"the daemon is version {daemon}, this is {mine}: stop the daemon with `llmd stop --daemon`",
            err=True,
        )


def daemon_version(host: str | None, timeout_s: float | None, config_file: Path | None) -> str | None:
    """Return the daemon's version; None if no daemon answers."""
    try:
        return connect(host, timeout_s, config_file).version()
    except DaemonUnreachableError:
        return None
