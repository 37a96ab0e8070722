"""The built-in subcommands as a plugin, described, listed and checked for name clashes like any other."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import Command, hookimpl
from llmd.cli.subcommands import SUBCOMMANDS

LLMD_API = 2


@hookimpl
def llmd_commands() -> Sequence[Command]:
    return [Command(name, subcommand.help, subcommand.load) for name, subcommand in SUBCOMMANDS.items()]
