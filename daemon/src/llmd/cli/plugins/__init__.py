"""``llmd plugins``: lists, installs, removes and creates plugins."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.plugins.notices import repair_interrupted
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "list": Subcommand(
        "llmd.cli.plugins.listing", "List installed plugins, their states, and why any are not used."
    ),
    "info": Subcommand("llmd.cli.plugins.info", "Show everything about one plugin."),
    "search": Subcommand("llmd.cli.plugins.search", "Search the list of known plugins."),
    "install": Subcommand("llmd.cli.plugins.install", "Try a plugin out and install it if it works."),
    "uninstall": Subcommand("llmd.cli.plugins.uninstall", "Uninstall a plugin."),
    "enable": Subcommand("llmd.cli.plugins.enable", "Use a plugin again that was disabled."),
    "disable": Subcommand("llmd.cli.plugins.disable", "Do not use a plugin, but leave it installed."),
    "new": Subcommand("llmd.cli.plugins.new", "Create the project of a new plugin."),
}

command = LazyGroup(
    "plugins",
    subcommands=SUBCOMMANDS,
    help="""List, install, remove and create plugins.

    A plugin adds devices, families of models, HTTP APIs, parsers, transports or commands. A running daemon uses
    other plugins after `llmd reload`.
    """,
    callback=repair_interrupted,
)
