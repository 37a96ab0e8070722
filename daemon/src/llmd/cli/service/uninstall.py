"""``llmd service uninstall``: stops the service and removes what `install` has made."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llmd.api.errors import NotFoundError
from llmd.cli.service.scope import SYSTEM, check_may_change, is_macos, named_service


@click.command("uninstall")
@SYSTEM
def command(*, is_system: bool) -> None:
    """Stop the service and remove it. Models, settings and keys stay."""
    if is_macos():
        _remove_agent()
        return
    from llmd.cli.service.units import SERVICE, SOCKET

    service = named_service(is_system=is_system)
    check_may_change(service)
    service.uninstall()
    click.echo(f"removed {SOCKET} and {SERVICE} from {service.folder}")
    if is_system:
        click.echo(
            "models, settings and keys stay in /var/lib/llmd and /etc/llmd, if there are any", err=True
        )


def _remove_agent() -> None:
    from llmd.cli.service.launch_agent import agent_path, bootout
    from llmd.cli.service.system_command import run

    path = agent_path(Path.home())
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", hint="`llmd service install` installs it")
    run(bootout(os.getuid()))
    path.unlink()
