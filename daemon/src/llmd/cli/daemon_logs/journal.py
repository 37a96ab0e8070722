"""The command that shows a unit's journal."""

from __future__ import annotations

import re

from llmd.cli.daemon_logs.options import LogView
from llmd.config.log_place import LogPlace

PRIORITIES = {"error": "err"}
"""journalctl's names where they differ from ours."""


def journal_command(place: LogPlace, view: LogView) -> list[str]:
    """Return the command for the lines of a view."""
    command = ["journalctl", "--quiet", "--no-pager", "--output=short-iso", f"--lines={view.lines}"]
    command.append(f"--user-unit={place.unit}" if place.is_user_unit else f"--unit={place.unit}")
    if view.level is not None:
        command.append(f"--priority={PRIORITIES.get(view.level, view.level)}")
    if view.request is not None:
        command.append(f"--grep=request_id\\W{{1,3}}{re.escape(view.request)}\\b")
    return [*command, "--follow"] if view.follow else command
