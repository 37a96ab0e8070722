"""Commands that use no daemon but the files and devices of this machine, and say so if that may surprise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from llmd.cli.settings import daemon_settings

if TYPE_CHECKING:
    from llmd.config import Settings

LOCAL = frozenset(
    {"cp", "devices", "keys add", "keys list", "keys rm", "list", "plan", "rm", "show"},
)
"""The commands that call `local_settings`, or `note_other_machine`."""


def local_settings(config_file: Path | None, what: str) -> Settings:
    """Return the settings for a command that uses ``what`` of this machine, such as "models".

    Raises:
        ConfigError: as `daemon_settings`.
    """
    settings = daemon_settings(config_file)
    note_other_machine(settings, what)
    return settings


def note_other_machine(settings: Settings, what: str) -> None:
    """Say on standard error that this machine is meant if commands otherwise use a daemon of another one."""
    from llmd.config import TcpAddress, parse_address

    origin, named = settings.origins["client.host"].source, settings.config.client.host
    address = parse_address(named, origin) if named else None
    if isinstance(address, TcpAddress) and not address.is_loopback:
        click.echo(f"llmd: note: these are the {what} of this machine, not of {address} ({origin})", err=True)


def answer_to_host(command_path: str) -> str:
    """Return why a command has no ``--host``; empty if it is another command."""
    command = command_path.partition(" ")[2]
    return f"`llmd {command}` works on this machine; run it on the other one" if command in LOCAL else ""
