"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Command, hookimpl

if TYPE_CHECKING:
    import click

LLMD_API = 2


@hookimpl
def llmd_commands() -> Sequence[Command]:
    return [Command("example", "Greet someone.", load)]


def load() -> click.Command:
    """Return the command. Called when it is run or its help is shown."""
    from llmd_command_example.command import command

    return command
