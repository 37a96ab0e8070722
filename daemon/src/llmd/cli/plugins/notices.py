"""What the commands for plugins say on standard error: interrupted changes, upgrades, a running daemon."""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llmd.host.installation.file_changes import FileChanges

if TYPE_CHECKING:
    from llmd.config import Address

RELOAD = "a daemon is running: `llmd reload` makes it use the change"


def repair_interrupted() -> None:
    """Undo an installation that was interrupted, and say so.

    Raises:
        NotPermittedError: there is one, but this user may not undo it.
    """
    files = FileChanges(Path(sys.prefix), Path(sysconfig.get_path("purelib")))
    if purpose := files.repair():
        click.echo(
            f"llmd: an earlier command was interrupted while {purpose}; the environment is as before that",
            err=True,
        )


def daemon_note() -> str:
    """Say how a running daemon notices a change of the environment; empty if none is running."""
    return RELOAD if _daemon_address() else ""


def choice_note(command: str) -> str:
    """Say how a running daemon notices a change of ``plugins.json``; empty if none is running.

    ``command`` made the change. The system's service has a file of its own.
    """
    from llmd.cli.service.units import SYSTEM_DIRECTORIES
    from llmd.config.directories import Directories

    address = _daemon_address()
    if address is None:
        return ""
    directories = Directories.of(os.environ)
    is_of_system = str(address) == f"unix:{directories.system_socket}"
    is_for_service = directories.config == SYSTEM_DIRECTORIES.config
    return of_service(command) if is_of_system and not is_for_service else RELOAD


def of_service(command: str) -> str:
    """Say how the system's service gets the same choice."""
    from llmd.cli.service.units import SYSTEM_ENVIRONMENT

    config = SYSTEM_ENVIRONMENT["XDG_CONFIG_HOME"]
    program = shlex.quote(str(Path(sys.prefix) / "bin" / "llmd"))
    return (
        "the service of the system has choices of its own; to change them, run"
        f" `sudo -u llmd XDG_CONFIG_HOME={config} {program} {command}` and then `llmd reload`"
    )


def _daemon_address() -> Address | None:
    from llmd.api.errors import LlmdError
    from llmd.cli.connection import connect

    try:
        return connect(None, None, None).address
    except LlmdError:
        return None


def say(notes: list[str]) -> None:
    """Print notes for people on standard error."""
    for note in notes:
        click.echo(note, err=True)
