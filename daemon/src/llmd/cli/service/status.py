"""``llmd service status``: what the service manager knows of the service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from llmd.api.errors import NotFoundError
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.service.scope import SYSTEM, installed_service, is_macos
from llmd.cli.service.systemd_service import UnitState

COLUMNS = (
    Column[UnitState]("UNIT", lambda row: row.unit),
    Column[UnitState]("STATE", lambda row: row.state),
    Column[UnitState]("ENABLED", lambda row: row.enabled),
    Column[UnitState]("PID", lambda row: str(row.pid or ""), lambda row: row.pid or 0),
    Column[UnitState]("RESTARTS", lambda row: str(row.restarts), lambda row: row.restarts),
    Column[UnitState]("STATUS", lambda row: row.status),
)


@click.command("status")
@SYSTEM
@listing_options
def command(*, is_system: bool, **view: Any) -> None:
    """Show the state of the service; exit with 3 if it is not installed."""
    rows = _agent() if is_macos() else installed_service(is_system=is_system).states()
    show(View(**view), "units", rows, COLUMNS)


def _agent() -> list[UnitState]:
    from llmd.cli.service.launch_agent import LABEL, agent_path, inspect
    from llmd.cli.service.system_command import succeeds

    if not agent_path(Path.home()).exists():
        raise NotFoundError("the service is not installed", hint="`llmd service install` installs it")
    state = "loaded" if succeeds(inspect(os.getuid())) else "not loaded"
    return [UnitState(LABEL, state, "", None, 0, "")]
