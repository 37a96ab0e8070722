"""``llmd plugins``: lists and installs plugins."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "list": Subcommand(
        "llmd.cli.plugins.listing", "List installed plugins, their states, and why any are not used."
    ),
    "install": Subcommand("llmd.cli.plugins.install", "Install a plugin and probe it."),
}

command = LazyGroup("plugins", subcommands=SUBCOMMANDS, help="List and install plugins.")
