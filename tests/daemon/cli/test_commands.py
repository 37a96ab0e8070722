"""The built-in verbs are a plugin like any other."""

from __future__ import annotations

from llmd.cli.verbs import VERBS
from llmd.host.description import describe
from llmd.host.names import PluginName


def test_the_built_in_verbs_are_described_like_those_of_a_plugin() -> None:
    description = describe(PluginName("commands", "llmd.cli.commands", "llmd-daemon", "0.1.0"))
    assert description.summary().commands == {name: verb.help for name, verb in VERBS.items()}
    assert all(command.load() is VERBS[command.name].load() for command in description.command)
