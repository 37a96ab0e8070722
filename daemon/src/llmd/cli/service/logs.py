"""``llmd service logs``: the log of the installed service, whether it runs or not."""

from __future__ import annotations

import click

from llmd.cli.daemon_logs.options import LogView, log_options
from llmd.cli.service.scope import SYSTEM, installed_service, is_macos
from llmd.cli.settings import build_settings


@click.command("logs")
@SYSTEM
@log_options
def command(*, is_system: bool, view: LogView) -> None:
    """Show the last lines of the service's log."""
    from llmd.cli.daemon_logs.command import show_log
    from llmd.cli.service.units import SERVICE
    from llmd.config.log_place import LogPlace

    if is_macos():
        place = LogPlace("file", str(build_settings(None).directories.log))
    else:
        service = installed_service(is_system=is_system)
        place = LogPlace("journal", unit=SERVICE, is_user_unit=not service.is_system)
    show_log(place, view)
