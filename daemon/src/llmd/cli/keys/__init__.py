"""``llmd keys``: who may use the daemon from other machines."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "add": Subcommand("llmd.cli.keys.add", "Make an API key and print it once."),
    "list": Subcommand("llmd.cli.keys.listing", "List the names and rights of keys."),
    "rm": Subcommand("llmd.cli.keys.rm", "Take a key back."),
}

command = LazyGroup("keys", subcommands=SUBCOMMANDS, help="Make, list and take back API keys.")
