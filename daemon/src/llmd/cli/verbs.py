"""The verbs of ``llmd``: where each lives and what it is for. Reading this table imports no command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click


class Verb(NamedTuple):
    """One verb: ``module`` holds its ``click.Command`` under the name ``command``."""

    module: str
    help: str

    def load(self) -> click.Command:
        command: click.Command = import_module(self.module).command
        return command


# In the order of ``llmd --help``: first what most people need.
VERBS = {
    "devices": Verb("llmd.cli.devices", "Show devices, how fast they are, and why one is not used."),
    "plugins": Verb("llmd.cli.plugins", "List and install plugins."),
    "doctor": Verb("llmd.cli.doctor", "Check this installation and say what mends it."),
}

# What people type who come from elsewhere.
ALIASES = {"ls": "list", "status": "ps", "unload": "stop"}
