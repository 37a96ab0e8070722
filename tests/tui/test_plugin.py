"""``llmd tui`` is the command of a plugin."""

from __future__ import annotations

from llmd.host.description import describe
from llmd.host.names import PluginName


def test_the_plugin_provides_the_command() -> None:
    description = describe(PluginName("tui", "llmd_tui.plugin", "llmd-tui", "0.1.0"))
    (command,) = description.command
    assert command.name == "tui"
    assert command.load().name == "command"
