"""``llmd keys``: API keys for access from other machines."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "add": Subcommand("llmd.cli.keys.add", "Create an API key and print it once."),
    "list": Subcommand("llmd.cli.keys.listing", "List keys and their rights."),
    "rm": Subcommand("llmd.cli.keys.rm", "Revoke a key."),
}

command = LazyGroup("keys", subcommands=SUBCOMMANDS, help="Create, list and revoke API keys.")
