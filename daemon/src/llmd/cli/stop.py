"""``llmd stop``: unloads a model or stops the daemon."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.daemon_end import stop_and_wait
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.settings import client_options


@click.command(cls=ModelCommand, epilog=examples("llmd stop guide", "llmd stop --daemon"))
@click.argument("model", shell_complete=model_names, required=False)
@click.option("--daemon", is_flag=True, help="Stop the daemon after running answers finish.")
@click.option("--no-wait", is_flag=True, help="With --daemon: return at once; the daemon ends later.")
@client_options
def command(
    *,
    model: str | None,
    daemon: bool,
    no_wait: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
) -> None:
    """Unload MODEL and free its memory; with --daemon, stop the daemon.

    A daemon that is stopped finishes running requests first, for at most `drain_s`. This command returns
    when it has ended; Ctrl-C returns earlier and changes nothing.
    """
    if daemon == bool(model):
        raise click.UsageError("name a model to unload, or use --daemon to stop the daemon")
    if no_wait and not daemon:
        raise click.UsageError("--no-wait is for --daemon: a model is unloaded at once")
    client = connect(host, timeout_s, config_file)
    if model:
        client.stop(named(model))
    elif no_wait:
        client.stop_daemon()
    else:
        stop_and_wait(client)
