"""``llmd config``: settings and the files they come from."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "show": Subcommand("llmd.cli.config.show", "Show every setting, its value and its origin."),
    "get": Subcommand("llmd.cli.config.get", "Print one setting."),
    "set": Subcommand("llmd.cli.config.set", "Change a setting in config.toml."),
    "unset": Subcommand("llmd.cli.config.unset", "Remove a setting from config.toml."),
    "edit": Subcommand("llmd.cli.config.edit", "Edit config.toml, and check it."),
    "check": Subcommand("llmd.cli.config.check", "Print every error of the configuration."),
    "schema": Subcommand("llmd.cli.config.schema", "Print the JSON Schema of config.toml."),
    "paths": Subcommand("llmd.cli.config.paths", "Show the files and folders that llmd uses."),
}

command = LazyGroup("config", subcommands=SUBCOMMANDS, help="Show, check and change settings.")
