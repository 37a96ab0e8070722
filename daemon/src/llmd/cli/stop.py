"""``llmd stop``: unloads a model or stops the daemon."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.settings import client_options


@click.command(cls=ModelCommand, epilog=examples("llmd stop guide", "llmd stop --daemon"))
@click.argument("model", shell_complete=model_names, required=False)
@click.option("--daemon", is_flag=True, help="Stop the daemon after running answers finish.")
@client_options
def command(
    *, model: str | None, daemon: bool, host: str | None, timeout_s: float | None, config_file: Path | None
) -> None:
    """Unload MODEL and free its memory; with --daemon, stop the daemon."""
    if daemon == bool(model):
        raise click.UsageError("name a model to unload, or use --daemon to stop the daemon")
    client = connect(host, timeout_s, config_file)
    if model:
        client.stop(named(model))
    else:
        client.stop_daemon()
