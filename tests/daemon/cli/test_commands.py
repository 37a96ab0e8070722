"""The built-in subcommands are a plugin like any other."""

from __future__ import annotations

from llmd.cli.subcommands import SUBCOMMANDS
from llmd.host.description import describe
from llmd.host.names import PluginName


def test_the_built_in_verbs_are_described_like_those_of_a_plugin() -> None:
    description = describe(PluginName("commands", "llmd.cli.commands", "llmd-daemon", "0.1.0"))
    assert description.summary().commands == {
        name: subcommand.help for name, subcommand in SUBCOMMANDS.items()
    }
    assert all(command.load() is SUBCOMMANDS[command.name].load() for command in description.command)
