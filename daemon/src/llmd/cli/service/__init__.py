"""``llmd service``: the daemon as a service of systemd or launchd."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "install": Subcommand("llmd.cli.service.install", "Install the service and start it on demand."),
    "uninstall": Subcommand("llmd.cli.service.uninstall", "Stop the service and remove it."),
    "status": Subcommand("llmd.cli.service.status", "Show the state of the service."),
    "logs": Subcommand("llmd.cli.service.logs", "Show the log of the service."),
}

command = LazyGroup(
    "service", subcommands=SUBCOMMANDS, help="Run the daemon as a service of systemd or launchd."
)
