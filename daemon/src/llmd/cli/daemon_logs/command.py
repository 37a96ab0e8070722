"""``llmd logs``: finds the running daemon's log and shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import ConfigError, DaemonUnreachableError, LlmdError, NotFoundError
from llmd.cli.daemon_logs.journal import journal_command
from llmd.cli.daemon_logs.line_filter import LineFilter
from llmd.cli.daemon_logs.log_files import last_lines, new_lines
from llmd.cli.daemon_logs.options import LogView, log_options
from llmd.cli.examples import examples
from llmd.cli.settings import client_options, daemon_settings
from llmd.config import TcpAddress
from llmd.config.directories import LOG_NAME
from llmd.config.log_place import LogPlace

if TYPE_CHECKING:
    from llmd.client import Client
    from llmd.config import Settings


@click.command("logs", epilog=examples("llmd logs -f", "llmd logs --level warning --lines 20"))
@log_options
@client_options
def command(*, view: LogView, host: str | None, timeout_s: float | None, config_file: Path | None) -> None:
    """Show the last lines of the daemon's log.

    They are in the journal if systemd runs the daemon, and in `daemon.log` if it runs in the background.
    Without a daemon, it is the log of the last one in the background.
    """
    settings = daemon_settings(config_file, host=host, timeout_s=timeout_s)
    show_log(find_log(settings), view)


def find_log(settings: Settings) -> LogPlace:
    """Return where the log of the daemon is.

    Raises:
        NotFoundError: there is none on this machine.
    """
    from llmd.client import Client

    client = Client(settings=settings)
    try:
        return _log_of(client)
    except DaemonUnreachableError:
        file = settings.directories.log
        if file.exists() and not settings.config.client.host:
            return LogPlace("file", str(file))
        raise


def _log_of(client: Client) -> LogPlace:
    state = client.daemon()
    place = msgspec.convert(state.get("log", {"kind": "other"}), prepared(LogPlace))
    pid, address = state.get("pid"), client.address
    if isinstance(address, TcpAddress) and not address.is_loopback:
        raise NotFoundError(
            f"the log of the daemon at {address} is on its own machine", hint="run `llmd logs` there"
        )
    if place.kind == "other":
        raise NotFoundError(
            f"the daemon (process {pid}) logs neither to the journal nor to {LOG_NAME}",
            hint="see the terminal or the file that its standard error was connected to",
        )
    return place


def show_log(place: LogPlace, view: LogView) -> None:
    """Print the lines of a view.

    Raises:
        LlmdError: the log cannot be read.
    """
    if place.kind == "journal":
        _show_journal(place, view)
        return
    path = Path(place.path)
    try:
        for line in last_lines(path, view.lines, lambda: LineFilter(view)):
            click.echo(line)
        if view.follow:
            passes = LineFilter(view)
            for line in new_lines(path, time.sleep):
                if passes(line):
                    click.echo(line)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{path} does not exist", hint="start a daemon with `llmd serve --detach`"
        ) from error


def _show_journal(place: LogPlace, view: LogView) -> None:
    program = shutil.which("journalctl")
    if program is None:
        raise ConfigError("journalctl is not installed", hint="install systemd's tools")
    status = subprocess.run(
        journal_command(place, view), executable=program, check=False, env=os.environ
    ).returncode
    # With a pattern, no match is status 1 and no error.
    if status not in {0, 1} or (status == 1 and view.request is None):
        raise LlmdError(f"journalctl failed with {status}", hint="only members of adm may read all journals")
