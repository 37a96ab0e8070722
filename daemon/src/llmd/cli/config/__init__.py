"""``llmd config``: settings and the files they come from."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "show": Subcommand("llmd.cli.config.show", "Show every setting, its value and its origin."),
    "paths": Subcommand("llmd.cli.config.paths", "Show the files and folders that llmd uses."),
}

command = LazyGroup("config", subcommands=SUBCOMMANDS, help="Show settings and their origins.")
