"""``llmd config``: settings, and where they are kept."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "show": Subcommand("llmd.cli.config.show", "Show every setting, its value and where it came from."),
    "paths": Subcommand("llmd.cli.config.paths", "Show which files and folders are used."),
}

command = LazyGroup("config", subcommands=SUBCOMMANDS, help="Show settings and where each came from.")
