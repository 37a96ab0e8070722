"""What the commands for plugins say on standard error: interrupted changes, upgrades, a running daemon."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import click

from llmd.host.installation.file_changes import FileChanges

RESTART = "a daemon is running: `llmd reload` makes it use the change"


def repair_interrupted() -> None:
    """Undo an installation that was interrupted, and say so.

    Raises:
        PluginError: there is one, but this user may not undo it.
    """
    files = FileChanges(Path(sys.prefix), Path(sysconfig.get_path("purelib")))
    if purpose := files.repair():
        click.echo(
            f"llmd: an earlier command was interrupted while {purpose}; the environment is as before that",
            err=True,
        )


def daemon_note() -> str:
    """Say how a running daemon notices a change of plugins; empty if none is running."""
    from llmd.api.errors import LlmdError
    from llmd.cli.connection import connect

    try:
        connect(None, None, None)
    except LlmdError:
        return ""
    return RESTART


def say(notes: list[str]) -> None:
    """Print notes for people on standard error."""
    for note in notes:
        click.echo(note, err=True)
