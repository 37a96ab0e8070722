"""Starts a daemon in the background if none answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import click

from llmd.api.errors import DaemonUnreachableError
from llmd.client import find_daemon
from llmd.config import Address


def reach(addresses: Sequence[Address], *, start: bool) -> None:
    """Make sure that a daemon answers at one of the addresses.

    Raises:
        DaemonUnreachableError: none answers, and none may be or could be started.
    """
    try:
        find_daemon(addresses)
    except DaemonUnreachableError:
        if not start:
            raise
        click.echo("starting a daemon; it goes on after you leave", err=True)
        command = [sys.executable, "-m", "llmd.cli.main", "serve", "--detach"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DaemonUnreachableError(
                f"no daemon could be started: {done.stderr.strip() or done.stdout.strip()}",
                hint="run `llmd serve` to see why",
            ) from None
        find_daemon(addresses)
