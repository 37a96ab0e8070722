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
    from llmd.cli.plugins.running_daemons import RunningDaemons


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


def daemon_notes() -> list[str]:
    """Say how running daemons notice a change of the environment; empty if none is running."""
    from llmd.cli.plugins.running_daemons import running_daemons

    running = running_daemons()
    reload = [reload_note(running.reload)] if running.here else []
    return _elsewhere(running) + reload


def choice_notes(command: str) -> list[str]:
    """Say how running daemons notice a change of ``plugins.json``; empty if none is running.

    ``command`` made the change. The system's service has a file of its own.
    """
    from llmd.cli.plugins.running_daemons import running_daemons
    from llmd.cli.service.units import SYSTEM_DIRECTORIES
    from llmd.config.directories import Directories

    running = running_daemons()
    if running.here is None:
        return _elsewhere(running)
    directories = Directories.of(os.environ)
    is_of_system = str(running.here) == f"unix:{directories.system_socket}"
    is_for_service = directories.config == SYSTEM_DIRECTORIES.config
    needs_own = is_of_system and not is_for_service
    note = of_service(command, running.reload) if needs_own else reload_note(running.reload)
    return [*_elsewhere(running), note]


def reload_note(reload: str) -> str:
    """Say which command makes the daemon of this machine use a change."""
    return f"a daemon is running: `{reload}` makes it use the change"


def of_service(command: str, reload: str) -> str:
    """Say how the system's service gets the same choice."""
    from llmd.cli.service.units import SYSTEM_ENVIRONMENT

    config = SYSTEM_ENVIRONMENT["XDG_CONFIG_HOME"]
    program = shlex.quote(str(Path(sys.prefix) / "bin" / "llmd"))
    return (
        "the service of the system has choices of its own; to change them, run"
        f" `sudo -u llmd XDG_CONFIG_HOME={config} {program} {command}` and then `{reload}`"
    )


def _elsewhere(running: RunningDaemons) -> list[str]:
    if running.elsewhere is None:
        return []
    where = f"the daemon at {running.elsewhere} ({running.named_by}) is on another machine"
    return [f"{where} and does not notice this change; to change its plugins, run the command there"]


def say(notes: list[str]) -> None:
    """Print notes for people on standard error."""
    for note in notes:
        click.echo(note, err=True)
